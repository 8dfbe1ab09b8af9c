package journal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

const (
	julyOfA = "{t:a}:q:month:202607"
	julyOfB = "{t:b}:q:month:202607"
)

func ofA(cost int64) []limit.Counter { return []limit.Counter{quota("{t:a}:q", cost)} }

// both charges two quotas.
func both(a, b int64) []limit.Counter { return append(ofA(a), quota("{t:b}:q", b)) }

// charge charges counters as the store does for a request, and has the request in
// flight.
func (l *ledger) charge(j *Journal, counters []limit.Counter) InFlight {
	l.mu.Lock()
	for _, c := range counters {
		l.charged[c.Key+":"+c.Calendar.At(noon).Name()] += c.Cost
	}
	l.mu.Unlock()
	return j.Begin(noon, counters)
}

// killed ends a process as a kill does: what it knew is gone.
func killed(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What has ended well stands, what is given back is, to the counters that are
// named; what is in flight when the process dies is given back by the next, once.
func TestWhatIsInFlightEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		j := open(t, dir, l, nil)
		j.End(l.charge(j, ofA(1)))
		j.GiveBack(l.charge(j, ofA(10)), noon, ofA(-10))
		j.GiveBack(l.charge(j, both(100, 7)), noon, both(-100, -7)[1:])
		j.GiveBack(l.charge(j, ofA(1000)), noon, nil)
		l.charge(j, both(10_000, 70))
		killed(t, j)
		for range 3 { // and then nothing is in flight any more
			settle(t, open(t, dir, l, nil))
			l.want(t, map[string]int64{julyOfA: 1101, julyOfB: 0})
		}
	})
}

// A thousand requests are in flight when the process is killed, some are settled
// beside them, and their records are settled around: each is given back once.
func TestAThousandInFlightAreEachGivenBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		j := open(t, dir, l, nil)
		for range 1000 {
			l.charge(j, ofA(1))
			j.End(l.charge(j, ofA(1)))
			j.GiveBack(l.charge(j, ofA(1)), noon, ofA(-1))
		}
		settle(t, j) // closed as by a kill: the requests in flight have no end
		l.want(t, map[string]int64{julyOfA: 2000})
		for range 3 {
			settle(t, open(t, dir, l, nil))
			l.want(t, map[string]int64{julyOfA: 1000})
		}
	})
}

// Requests that stay in flight for long do not fill the journal: their records go
// to its end, and none of those beside them is dropped.
func TestLongRequestsHoldUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		j := open(t, dir, l, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- j.Run(ctx) }()
		long := []InFlight{l.charge(j, ofA(1)), l.charge(j, ofA(10)), l.charge(j, ofA(100))}
		for i := range 20_000 {
			j.End(l.charge(j, both(0, 1)))
			if i%500 == 0 {
				<-time.After(time.Second) // of the bubble's: Run goes on
			}
		}
		j.End(long[0])
		j.GiveBack(long[1], noon, ofA(-10))
		<-time.After(time.Second)
		if st := j.spool.Stats(); st.Dropped > 0 {
			t.Errorf("%d records are dropped", st.Dropped)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		killed(t, j)
		settle(t, open(t, dir, l, nil))
		l.want(t, map[string]int64{julyOfA: 1, julyOfB: 20_000})
	})
}

// The process is killed at each settlement of a random history, and each process
// after it again: what ended stands or is given back as it ended, what did not is
// given back, all of it once.
func TestKillsAtAnyStepGiveBackOnce(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a history
				l, dir := newLedger(), t.TempDir()
				want := int64(0)
				for range 5 {
					j := open(t, dir, l, nil)
					var folder string
					l.watch = func(string) {
						if folder == "" && random.IntN(2) == 0 {
							folder = image(t, dir) // a kill, with the answer on its way
						}
					}
					for range random.IntN(60) {
						switch random.IntN(4) {
						case 0:
							j.End(l.charge(j, ofA(1)))
							want++
						case 1:
							j.GiveBack(l.charge(j, ofA(1)), noon, ofA(-1))
						case 2:
							l.charge(j, ofA(1)) // it has no end when the process dies
						default:
							if _, err := j.stretch(t.Context()); err != nil {
								t.Fatal(err)
							}
						}
						if folder != "" {
							break
						}
					}
					l.watch = nil
					killed(t, j)
					if folder != "" {
						dir = folder
					}
				}
				settle(t, openAt(t, dir, l))
				l.want(t, map[string]int64{julyOfA: want})
			})
		})
	}
}

func openAt(t *testing.T, dir string, l *ledger) *Journal { return open(t, dir, l, nil) }

// After a crash of the machine nobody knows which requests had ended: nothing is
// given back that may have been served.
func TestNothingIsGivenBackAfterACrashOfTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		boot := "first"
		start := func() *Journal {
			j, err := Open(Options{Dir: dir, SizeBytes: 1 << 20, Gateway: "gw", Store: l, Boot: func() string { return boot }})
			if err != nil {
				t.Fatal(err)
			}
			return j
		}
		j := start()
		l.charge(j, ofA(1))
		killed(t, j)
		boot = "second"
		for range 2 {
			settle(t, start())
			l.want(t, map[string]int64{julyOfA: 1})
		}
	})
}

// Redis is lost after a stretch was sent, and before it was answered: what charges
// is charged again, for the counter has lost it or is too high by it; what gives
// back is not given back again. Where nothing was sent, everything is settled.
func TestNothingIsGivenBackAgainAfterALoss(t *testing.T) {
	for name, c := range map[string]struct {
		before, dies bool
		epoch        string
		a, b         int64
	}{
		"sent, and lost":               {false, false, "second", 100 - 10, 2 * 5},
		"sent, lost, and killed":       {false, true, "second", 100 - 10, 2 * 5},
		"sent, and not lost":           {false, false, "first", 100 - 10, 5},
		"sent, not lost, and killed":   {false, true, "first", 100 - 10, 5},
		"not sent, and lost":           {true, false, "second", 100 - 10, 5},
		"not sent, lost, and restored": {true, false, "third", 100 - 10, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, dir := newLedger(), t.TempDir()
				l.charged[julyOfA] = 100
				j := open(t, dir, l, nil)
				j.Append(noon, both(-10, 5))
				l.fail = func() (bool, bool) { return c.before, !c.before }
				if _, err := j.stretch(t.Context()); err == nil {
					t.Fatal("settled")
				}
				l.fail = nil
				if c.epoch != "first" {
					l.lose(c.epoch)
				}
				if c.dies {
					killed(t, j)
					j = open(t, dir, l, nil)
				}
				settle(t, j)
				l.want(t, map[string]int64{julyOfA: c.a, julyOfB: c.b})
			})
		})
	}
}
