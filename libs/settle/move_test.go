package settle

import (
	"testing"
	"testing/synctest"

	"github.com/sluice-platform/sluice/libs/limit"
)

// Each counter is given back in the period it was used in.
func TestWhatIsGivenBackBelongsToWhenItWasUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		s := open(t, dir, l, nil)
		s.Append(noon, ofA(4))
		back := both(-4, -1)
		back[0].At = noon
		s.GiveBack(decide(t, s, ofA(2)), noon.AddDate(0, 0, 2), back)
		settle(t, s)
		l.want(t, map[string]int64{julyOfA: 2, "{t:b}:q:month:202608": -1})
	})
}

// The process is killed at each step of a hold's way into the journal, and at
// each again in the start that mends it.
func TestHoldsMoveOnceWhereverTheProcessDies(t *testing.T) {
	record := newRecord(noon, ofA(-10)).encode()
	moving := func(t *testing.T, s *Settler, h Hold) {
		b := append(make([]byte, headBytes), record...)
		if err := s.holds.write(h.slot, slotMoving, s.spool.NextSeq(), b); err != nil {
			t.Error(err)
		}
	}
	// A step does what move does up to there.
	steps := map[string]func(*testing.T, *Settler, Hold){
		"held":   func(*testing.T, *Settler, Hold) {},
		"moving": moving,
		"appended": func(t *testing.T, s *Settler, h Hold) {
			moving(t, s, h)
			s.spool.Append(record)
		},
		"moved": func(_ *testing.T, s *Settler, h Hold) { s.GiveBack(h, noon, ofA(-10)) },
		"settled": func(t *testing.T, s *Settler, h Hold) {
			moving(t, s, h)
			s.spool.Append(record)
			if _, err := s.stretch(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"journal closed": func(t *testing.T, s *Settler, h Hold) {
			if err := s.spool.Close(); err != nil {
				t.Error(err)
			}
			s.GiveBack(h, noon, ofA(-10))
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, dir := newLedger(), t.TempDir()
				s := open(t, dir, l, nil)
				s.Append(noon, ofA(1000))
				decide(t, s, ofA(1)) // another one in flight, in a slot before it
				step(t, s, decide(t, s, ofA(10)))
				_ = s.Close() // in one case the journal is closed already
				killed(t, open(t, dir, l, nil))
				settle(t, open(t, dir, l, nil))
				l.want(t, map[string]int64{julyOfA: 1000})
			})
		})
	}
}

// What is given back while the journal is closed, of several requests, is given
// back by the next start.
func TestWhatAClosedJournalDoesNotTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		s := open(t, dir, l, nil)
		held := []Hold{decide(t, s, ofA(1)), decide(t, s, ofA(1)), decide(t, s, ofA(1))}
		if err := s.spool.Close(); err != nil {
			t.Fatal(err)
		}
		for _, h := range held {
			s.GiveBack(h, noon, ofA(-1))
		}
		_ = s.Close()
		settle(t, open(t, dir, l, nil))
		l.want(t, nil)
	})
}

// What a process before had on its way into the journal goes there on a disk that
// has no room for it beside.
func TestWhatWasMovingNeedsNoRoom(t *testing.T) {
	for _, state := range []uint32{slotOwed, slotMoving} {
		synctest.Test(t, func(t *testing.T) {
			l, dir := newLedger(), t.TempDir()
			s := open(t, dir, l, nil)
			s.Append(noon, ofA(1000))
			record := newRecord(noon, ofA(-10)).encode()
			h := decide(t, s, ofA(10))
			if err := s.holds.write(h.slot, state, s.spool.NextSeq(), append(make([]byte, headBytes), record...)); err != nil {
				t.Fatal(err)
			}
			onDisk(s).heads = true
			if err := s.endHeld(); err != nil {
				t.Fatal(err)
			}
			s.Append(noon, []limit.Counter{quota("{t:b}:q", 1)})
			settle(t, s)
			settle(t, open(t, dir, l, nil))
			l.want(t, map[string]int64{julyOfA: 1000, julyOfB: 1})
		})
	}
}
