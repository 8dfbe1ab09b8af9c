package journal

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// A mark is settled when all before it is charged, by this process or the next,
// whatever comes behind it.
func TestMarksAreSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		s := open(t, dir, l, func() time.Time { return noon })
		if !s.Settled(s.Mark()) {
			t.Error("an empty journal owes something")
		}
		s.Append(noon, []limit.Counter{quota("{t:acme}:q", 3)})
		mark := s.Mark()
		if s.Settled(mark) {
			t.Error("what was never charged is settled")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, l, func() time.Time { return noon })
		if s.Settled(s.Mark()) {
			t.Error("what the process before left is settled")
		}
		settle(t, s)
		if !s.Settled(s.Mark()) || s.Mark() != mark {
			t.Error("what was charged is not settled")
		}
	})
}

// What a bucket let pass is owed whole while the least of it is not refilled.
func TestBucketsAreChargedWholeUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		s := open(t, t.TempDir(), l, func() time.Time { return noon.Add(time.Second) })
		daily := limit.Counter{Key: "{t:acme}:g", Algorithm: limit.GCRA, Limit: 1, Window: 24 * time.Hour, Burst: 60, Cost: 1}
		for range 15 {
			s.Append(noon, []limit.Counter{daily})
		}
		settle(t, s)
		if l.charged["{t:acme}:g"] != 15 {
			t.Errorf("%d of 15 are charged", l.charged["{t:acme}:g"])
		}
	})
}
