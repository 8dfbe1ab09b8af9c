package settle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

const julyOfA = "{t:a}:q:month:202607"

func ofA(cost int64) []limit.Counter { return []limit.Counter{quota("{t:a}:q", cost)} }

func (l *ledger) want(t *testing.T, want map[string]int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, n := range want {
		if l.charged[key] != n {
			t.Errorf("%s: %d charged, want %d", key, l.charged[key], n)
		}
	}
	for key, n := range l.charged {
		if _, named := want[key]; !named && n != 0 {
			t.Errorf("%s: %d charged, want nothing", key, n)
		}
	}
}

// What is kept stands, what is given back is, and of several counters those
// that are named; what is held when the process dies is given back by the next.
func TestHoldsEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		s := open(t, dir, l, nil)
		s.Keep(s.Hold(noon, ofA(-1)))
		s.GiveBack(s.Hold(noon, ofA(-10)), 0)
		both := append(ofA(-100), quota("{t:b}:q", -5))
		s.GiveBack(s.Hold(noon, both), 1)
		s.GiveBack(s.Hold(noon, both), 3)
		s.Hold(noon, both)
		if err := s.Close(); err != nil { // killed: what it knew is gone
			t.Fatal(err)
		}
		settle(t, open(t, dir, l, nil))
		l.want(t, map[string]int64{julyOfA: -110, "{t:b}:q:month:202607": -10})
		settle(t, open(t, dir, l, nil)) // nothing is held any more
		l.want(t, map[string]int64{julyOfA: -110, "{t:b}:q:month:202607": -10})
	})
}

// A request that passed uncounted and failed owes nothing, whether or not its
// charge was settled before; each counter in the period it was used in.
func TestWhatIsOwedAndGivenBackIsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		s := open(t, dir, l, nil)
		s.Append(noon, ofA(4))
		back := ofA(-4)
		back[0].At = noon
		h := s.Hold(noon.AddDate(0, 0, 2), append(back, quota("{t:b}:q", -1)))
		if _, err := s.stretch(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.want(t, map[string]int64{julyOfA: 4})
		s.GiveBack(h, 0)
		settle(t, s)
		l.want(t, map[string]int64{julyOfA: 0, "{t:b}:q:month:202608": -1})
	})
}

// The process is killed at each step of a hold's way into the journal, and at
// each again in the start that mends it.
func TestHoldsMoveOnceWhereverTheProcessDies(t *testing.T) {
	// A step does what move does up to there.
	steps := map[string]func(*Settler, Hold){
		"held": func(*Settler, Hold) {},
		"marked": func(s *Settler, h Hold) {
			h.head.state, h.head.number = slotMoving, s.spool.NextSeq()
			if err := s.holds.mark(h.slot, h.head); err != nil {
				t.Error(err)
			}
		},
		"appended": func(s *Settler, h Hold) {
			h.head.state, h.head.number = slotMoving, s.spool.NextSeq()
			if err := s.holds.mark(h.slot, h.head); err != nil {
				t.Error(err)
			}
			s.spool.Append(h.record.encode())
		},
		"moved": func(s *Settler, h Hold) { s.GiveBack(h, 0) },
		"settled": func(s *Settler, h Hold) {
			h.head.state, h.head.number = slotMoving, s.spool.NextSeq()
			if err := s.holds.mark(h.slot, h.head); err != nil {
				t.Error(err)
			}
			s.spool.Append(h.record.encode())
			if _, err := s.stretch(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"journal closed": func(s *Settler, h Hold) {
			if err := s.spool.Close(); err != nil {
				t.Error(err)
			}
			s.GiveBack(h, 0)
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, dir := newLedger(), t.TempDir()
				s := open(t, dir, l, nil)
				s.Append(noon, ofA(1000))
				s.Hold(noon, ofA(-1)) // another one in flight, in a slot before it
				step(s, s.Hold(noon, ofA(-10)))
				_ = s.Close() // in one case the journal is closed already
				s = open(t, dir, l, nil)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				settle(t, open(t, dir, l, nil))
				l.want(t, map[string]int64{julyOfA: 989})
			})
		})
	}
}

// Requests are held, kept and given back while processes are killed and answers
// get lost: what is given back is what failed or had no answer.
func TestHoldsSurviveAnyHistory(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a reproducible history
			l, dir := newLedger(), t.TempDir()
			l.fail = func() (bool, bool) { return rng.IntN(3) == 0, rng.IntN(2) == 0 }
			want := map[string]int64{}
			for range 15 {
				s := open(t, dir, l, nil)
				for range rng.IntN(40) {
					owner := fmt.Sprintf("{t:%d}:q", rng.IntN(20))
					h := s.Hold(noon, []limit.Counter{quota(owner, -3)})
					switch rng.IntN(3) {
					case 0:
						s.Keep(h)
						continue
					case 1:
						s.GiveBack(h, 0)
					}
					want[owner+":month:202607"] -= 3
				}
				if _, err := s.stretch(t.Context()); err != nil {
					s.spool.Rewind()
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			settle(t, open(t, dir, l, nil))
			l.want(t, want)
		})
	}
}

// A slot that was torn by a kill is no hold, and the slots of requests that
// ended are used again.
func TestSlotsAreUsedAgainAndTornOnesAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		s := open(t, dir, l, nil)
		for range 100 {
			s.Keep(s.Hold(noon, ofA(-1)))
		}
		if s.holds.slots != 1 {
			t.Errorf("%d slots for one request at a time", s.holds.slots)
		}
		h := s.Hold(noon, ofA(-7))
		if _, err := s.holds.file.WriteAt([]byte("torn"), place(h.slot)+headBytes+5); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		settle(t, open(t, dir, l, nil))
		l.want(t, nil)
	})
}

// What no slot has room for is held all the same, but for a kill.
func TestHoldsWithoutASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		s := open(t, t.TempDir(), l, nil)
		many := make([]limit.Counter, maxHeld+1)
		for i := range many {
			many[i] = quota("{t:a}:q", -1)
		}
		h := s.Hold(noon, many)
		if h.slot != 0 {
			t.Errorf("slot %d", h.slot)
		}
		s.GiveBack(h, 0)
		s.Keep(s.Hold(noon, many))
		s.Keep(s.Hold(noon, nil))
		settle(t, s)
		l.want(t, map[string]int64{julyOfA: -(maxHeld + 1)})
	})
}

func BenchmarkHold(b *testing.B) {
	s, err := Open(Options{Dir: b.TempDir(), SizeBytes: 1 << 20, Gateway: "gw", Store: newLedger(), Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	counters := ofA(-1)
	b.ReportAllocs()
	for b.Loop() {
		s.Keep(s.Hold(noon, counters))
	}
}
