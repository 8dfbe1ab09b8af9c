package journal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

var noon = time.Date(2026, 7, 31, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, dir string, store Store, now func() time.Time) *Journal {
	t.Helper()
	s, err := Open(Options{Dir: dir, SizeBytes: 1 << 20, Gateway: "gw", Store: store, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// settle runs until nothing is pending, in the bubble's time.
func settle(t *testing.T, s *Journal) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for s.Pending() > 0 {
		<-time.After(time.Second)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func quota(key string, cost int64) limit.Counter {
	return limit.Counter{Key: key, Algorithm: limit.RenewingQuota, Limit: 1000, Calendar: period.Month(), Cost: cost}
}

func TestQuotasAreChargedInTheirPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		s := open(t, t.TempDir(), l, func() time.Time { return noon.AddDate(0, 0, 3) })
		for i := range 10 {
			s.Append(noon.Add(time.Duration(i)*2*time.Hour), []limit.Counter{quota("{t:acme}:q", 3)})
		}
		settle(t, s)
		// From noon of the 31st on, six are July's.
		if l.charged["{t:acme}:q:month:202607"] != 18 || l.charged["{t:acme}:q:month:202608"] != 12 {
			t.Errorf("charged %v", l.charged)
		}
	})
}

func TestRatesAreChargedWhatStillCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		now := noon.Add(time.Minute)
		s := open(t, t.TempDir(), l, func() time.Time { return now })
		fixed := limit.Counter{Key: "f", Algorithm: limit.FixedWindow, Limit: 50, Window: time.Hour, Cost: 1}
		fast := limit.Counter{Key: "g", Algorithm: limit.GCRA, Limit: 60, Burst: 30, Window: time.Minute, Cost: 1}
		over := limit.Counter{Key: "o", Algorithm: limit.TokenBucket, Limit: 60, Burst: 5, Window: time.Minute, Cost: 1}
		rested := limit.Counter{Key: "r", Algorithm: limit.GCRA, Limit: 6000, Burst: 30, Window: time.Minute, Cost: 1}
		free := limit.Counter{Key: "u", Algorithm: limit.FixedWindow, Unlimited: true, Window: time.Minute, Cost: 1}
		for range 80 {
			s.Append(noon, []limit.Counter{fixed, fast, over, rested, free})
		}
		settle(t, s)
		// 80 at one instant a minute ago; 60 of the fast one's are refilled since.
		want := map[string]int64{"f": 50, "g": 20, "o": 5, "r": 0}
		for key, n := range want {
			if l.charged[key] != n {
				t.Errorf("%s: %d charged, want %d", key, l.charged[key], n)
			}
		}
		if len(l.charged) != len(want) || !l.at["f"].Equal(noon) {
			t.Errorf("charged %v at %v", l.charged, l.at)
		}
	})
}

// What is given back nets with what is charged in the same stretch, and is given
// back by itself where the charge is the store's already; shadow counters too.
func TestUnitsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		s := open(t, t.TempDir(), l, func() time.Time { return noon })
		fixed := limit.Counter{Key: "f", Algorithm: limit.FixedWindow, Limit: 50, Window: time.Hour}
		fast := limit.Counter{Key: "g", Algorithm: limit.GCRA, Limit: 60, Burst: 30, Window: time.Minute}
		settled := limit.Counter{Key: "b", Algorithm: limit.TokenBucket, Limit: 60, Burst: 30, Window: time.Minute, Shadow: true}
		for _, units := range []int64{10, -3, 2, -4} {
			fixed.Cost, fast.Cost = units, units
			s.Append(noon, []limit.Counter{fixed, fast, quota("{t:a}:q", units)})
		}
		settled.Cost = -7
		s.Append(noon, []limit.Counter{settled})
		settle(t, s)
		for key, n := range map[string]int64{"f": 5, "g": 5, "{t:a}:q:month:202607": 5, "b": -7} {
			if l.charged[key] != n {
				t.Errorf("%s: %d charged, want %d", key, l.charged[key], n)
			}
		}
	})
}

// A bucket is given back what it has not refilled since the store charged it, by
// the store's clock: not what passed and was given back within one stretch, which
// nets by when it passed.
func TestBucketsAreGivenBackWhatIsNotRefilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.clock = noon.Add(20 * time.Second)
		s := open(t, t.TempDir(), l, func() time.Time { return noon.Add(time.Hour + 20*time.Second) }) // set wrong
		late := limit.Counter{Key: "late", Algorithm: limit.GCRA, Limit: 60, Burst: 60, Window: time.Minute, Cost: -30}
		s.Append(noon, []limit.Counter{late})
		s.Append(noon.Add(10*time.Second), []limit.Counter{withCost(late, -7)}) // long refilled
		settle(t, s)
		l.want(t, map[string]int64{"late": -10})

		l = newLedger()
		l.clock = noon.Add(16 * time.Second)
		s = open(t, t.TempDir(), l, l.Clock)
		for at, units := range []int64{40, 3} {
			passed := noon.Add(time.Duration(at) * 15 * time.Second)
			s.Append(passed, []limit.Counter{withCost(late, units)})
		}
		s.Append(noon, []limit.Counter{withCost(late, -39)})
		settle(t, s)
		// One at noon, and three a quarter of a minute later, of which one is refilled.
		l.want(t, map[string]int64{"late": 2})
	})
}

func withCost(c limit.Counter, cost int64) limit.Counter {
	c.Cost = cost
	return c
}

// Answers get lost, processes are killed between any two steps, and requests
// come in all the while: each is charged once.
func TestEachIsChargedOnce(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a reproducible history
			l, dir := newLedger(), t.TempDir()
			l.fail = func() (bool, bool) { return rng.IntN(3) == 0, rng.IntN(2) == 0 }
			want := map[string]int64{}
			for range 20 {
				s := open(t, dir, l, nil)
				for range rng.IntN(60) {
					a, b := fmt.Sprintf("{t:%d}:q", rng.IntN(40)), fmt.Sprintf("{t:%d}:x", rng.IntN(40))
					s.Append(noon, []limit.Counter{quota(a, 1), quota(b, 2)})
					want[a+":month:202607"]++
					want[b+":month:202607"] += 2
				}
				for range rng.IntN(3) {
					if _, err := s.stretch(t.Context()); err != nil {
						s.spool.Rewind()
					}
				}
				if err := s.Close(); err != nil { // killed: what it knew is gone
					t.Fatal(err)
				}
			}
			settle(t, open(t, dir, l, nil))
			for key, n := range want {
				if l.charged[key] != n {
					t.Errorf("seed %d: %s: %d charged, want %d", seed, key, l.charged[key], n)
				}
			}
		})
	}
}

// One broken counter does not keep the others from being charged.
func TestBrokenCounterIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.broken = "bad"
		s := open(t, t.TempDir(), l, nil)
		for i := range 50 {
			s.Append(noon, []limit.Counter{quota(fmt.Sprintf("{t:%d}:q", i), 1), quota("{t:bad}:q", 1)})
		}
		settle(t, s)
		if len(l.charged) != 50 {
			t.Errorf("%d counters charged", len(l.charged))
		}
	})
}

// A journal whose file was lost begins to number anew, and must not be taken
// for the old one.
func TestReplacedJournalHasAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		for range 2 {
			s := open(t, dir, l, nil)
			for range 5 {
				s.Append(noon, []limit.Counter{quota("{t:a}:q", 1)})
			}
			settle(t, s)
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if filepath.Base(f) != stateName {
					if err := os.Remove(f); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if n := l.charged["{t:a}:q:month:202607"]; n != 10 {
			t.Errorf("%d charged, want 10", n)
		}
	})
}
