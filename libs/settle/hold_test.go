package settle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

// both charges two quotas, of which the first one is to come back.
func both(a, b int64) []limit.Counter { return append(ofA(a), quota("{t:b}:q", b)) }

const first = 1 // the bit of the first counter

func decide(t *testing.T, s *Settler, counters []limit.Counter) Hold {
	t.Helper()
	d, h, err := s.Decide(t.Context(), counters, first)
	if err != nil || !d.Allowed || h.slot == 0 {
		t.Fatalf("%+v in slot %d, %v", d, h.slot, err)
	}
	return h
}

// killed ends a process as a kill does: what it knew is gone.
func killed(t *testing.T, s *Settler) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// What is kept stands, what is given back is, to the counters that are named;
// what is held when the process dies is given back by the next.
func TestHoldsEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		s := open(t, dir, l, nil)
		s.Keep(decide(t, s, ofA(1)))
		s.GiveBack(decide(t, s, ofA(10)), noon, ofA(-10))
		s.GiveBack(decide(t, s, both(100, 7)), noon, both(-100, -7)[1:])
		s.GiveBack(decide(t, s, ofA(1000)), noon, nil)
		decide(t, s, both(10_000, 70))
		killed(t, s)
		want := map[string]int64{julyOfA: 1101, julyOfB: 70}
		for range 2 { // and then nothing is held any more
			settle(t, open(t, dir, l, nil))
			l.want(t, want)
		}
	})
}

// What is denied or cannot be asked leaves no hold, and what is charged without
// an answer is given back whole, also by the process that asked; a call that
// comes in afterwards charges nothing.
func TestDecisionsThatDoNotPassLeaveNothing(t *testing.T) {
	for name, prepare := range map[string]func(*ledger){
		"denied": func(l *ledger) { l.deny = true },
		"lost":   func(l *ledger) { l.lose = func() (bool, bool) { return true, false } },
		"late":   func(l *ledger) { l.lose = func() (bool, bool) { return true, true } },
	} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprint(name, dies), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l, dir := newLedger(), t.TempDir()
					prepare(l)
					s := open(t, dir, l, nil)
					if d, h, err := s.Decide(t.Context(), both(1, 5), first); d.Allowed || h.slot != 0 || (err == nil) != l.deny {
						t.Fatalf("%+v in slot %d, %v", d, h.slot, err)
					}
					if pending := s.Pending(); pending > 0 == l.deny {
						t.Errorf("%d are open", pending)
					}
					if dies {
						killed(t, s)
						s = open(t, dir, l, nil)
					}
					settle(t, s)
					l.arrive()
					l.want(t, nil)
				})
			})
		}
	}
}

// The process is killed at each step of a charge, and at each again in the start
// that takes it back, twice: what is to come back does, once, the rest stands, and
// a call that comes in after the first start charges nothing.
func TestChargesComeBackWhereverTheProcessDies(t *testing.T) {
	type death struct {
		step string
		late bool // the call comes in after all
	}
	for _, d := range []death{{"asked", false}, {"asked", true}, {"answered", false}, {"decided", false}} {
		for _, again := range []string{"", "taking back", "taken back"} {
			t.Run(fmt.Sprint(d, again), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLedger()
					l.lose = func() (bool, bool) { return d.late, d.late }
					left := killedDeciding(t, l, d.step)
					for range 2 {
						if again != "" {
							left = killedTakingBack(t, l, left, again)
						}
					}
					for range 2 {
						settle(t, open(t, left, l, nil))
						l.arrive()
					}
					want := map[string]int64{julyOfA: 0, julyOfB: 3}
					if d.late {
						want = nil
					}
					l.want(t, want)
				})
			})
		}
	}
}

// killedDeciding charges a request, and returns what a kill at that step leaves.
func killedDeciding(t *testing.T, l *ledger, step string) (left string) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir, l, nil)
	l.watch = func(at string) {
		if at == step {
			left = image(t, dir)
		}
	}
	_, _, err := s.Decide(t.Context(), both(10, 3), first)
	l.step("decided")
	l.watch = nil
	killed(t, s)
	if left == "" {
		t.Fatalf("not killed %s: %v", step, err)
	}
	return left
}

// killedTakingBack starts a process, and returns what a kill at that step leaves.
func killedTakingBack(t *testing.T, l *ledger, dir, step string) (left string) {
	t.Helper()
	s := open(t, dir, l, nil)
	l.watch = func(at string) {
		if at == step {
			left = image(t, dir)
		}
	}
	err := s.takeBackRound(t.Context())
	l.watch = nil
	killed(t, s)
	if err != nil || left == "" {
		t.Fatalf("not killed %s: %v", step, err)
	}
	return left
}

// A store that is away is waited for, over any number of starts. One that has
// lost the note gives nothing back: it cannot tell whether there was a charge.
func TestTheStoreIsWaitedForAndMayHaveForgotten(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, dir := newLedger(), t.TempDir()
			s := open(t, dir, l, nil)
			decide(t, s, ofA(5))
			killed(t, s)
			for range 3 {
				s = open(t, dir, l, nil)
				l.fail = func() (bool, bool) { return true, true }
				if err := s.takeBackRound(t.Context()); !errors.Is(err, limit.ErrUnavailable) || s.Pending() != 1 {
					t.Fatalf("%v, %d pending", err, s.Pending())
				}
				l.fail = nil
				s.Keep(decide(t, s, ofA(100))) // in a slot of its own
				killed(t, s)
			}
			want := int64(300)
			if forgotten {
				clear(l.last)
				want += 5
			}
			settle(t, open(t, dir, l, nil))
			l.want(t, map[string]int64{julyOfA: want})
		})
	}
}

// A counter that holds something else keeps only itself from being given back.
func TestBrokenCountersAreGivenBackForEachAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		s := open(t, dir, l, nil)
		if _, _, err := s.Decide(t.Context(), both(10, 3), 3); err != nil {
			t.Fatal(err)
		}
		killed(t, s)
		l.broken = "{t:b}"
		for range 2 {
			settle(t, open(t, dir, l, nil))
			l.want(t, map[string]int64{julyOfA: 0, julyOfB: 3})
		}
	})
}

// A charge is asked for in the period that its slot says: where that is over
// another slot says so, and what comes back does in the period it was charged in.
func TestChargesAreHeldInTheirPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		august := noon.AddDate(0, 0, 1)
		l.clocks = []time.Time{august}
		s := open(t, dir, l, nil)
		decide(t, s, ofA(5))
		l.want(t, map[string]int64{"{t:a}:q:month:202608": 5})
		l.clocks = []time.Time{august, august, august, august}
		if _, h, err := s.Decide(t.Context(), ofA(7), first); !errors.Is(err, limit.ErrOtherPeriod) || h.slot != 0 || len(l.clocks) != 1 {
			t.Errorf("slot %d, %v, %d tries left", h.slot, err, len(l.clocks))
		}
		l.clocks = nil
		killed(t, s)
		settle(t, open(t, dir, l, nil))
		l.want(t, nil)
	})
}

// Numbers of a slot's notes grow over starts, whatever the clock says.
func TestNumbersOfNotesGrow(t *testing.T) {
	l, dir := newLedger(), t.TempDir()
	var last []uint64
	for _, now := range []time.Time{noon, noon, noon.Add(-time.Hour), noon.Add(time.Hour), time.UnixMicro(0)} {
		s := open(t, dir, l, func() time.Time { return now })
		for range 3 {
			s.Keep(decide(t, s, ofA(1)))
			last = append(last, s.holds.slots[0].number)
		}
		if len(s.holds.slots) != 1 {
			t.Errorf("%d slots for one request at a time", len(s.holds.slots))
		}
		killed(t, s)
	}
	if !slices.IsSorted(last) || len(slices.Compact(last)) != 15 || last[14] > limit.MaxNote {
		t.Errorf("numbers %v", last)
	}
}

// Where a slot cannot be written the charge is made all the same.
func TestChargesAreMadeWithoutTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		s := open(t, t.TempDir(), l, nil)
		if err := s.holds.close(); err != nil {
			t.Fatal(err)
		}
		d, h, err := s.Decide(t.Context(), ofA(9), first)
		if err != nil || !d.Allowed || h.slot != 0 {
			t.Fatalf("%+v in slot %d, %v", d, h.slot, err)
		}
		s.Keep(h)
		s.GiveBack(h, noon, ofA(-4))
		if _, err := s.stretch(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.want(t, map[string]int64{julyOfA: 5})
	})
}

// Requests are charged, kept and given back while processes are killed, answers
// get lost and calls come late: what stays is what ended well.
func TestHoldsSurviveAnyHistory(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a reproducible history
			l, dir := newLedger(), t.TempDir()
			l.fail = func() (bool, bool) { return rng.IntN(3) == 0, rng.IntN(2) == 0 }
			l.lose = func() (bool, bool) { lost := rng.IntN(4) == 0; return lost, lost && rng.IntN(2) == 0 }
			want := map[string]int64{}
			for range 15 {
				s := open(t, dir, l, nil)
				for range rng.IntN(40) {
					owner := fmt.Sprintf("{t:%d}:q", rng.IntN(20))
					_, h, err := s.Decide(t.Context(), []limit.Counter{quota(owner, 3)}, first)
					if err != nil {
						continue
					}
					switch rng.IntN(3) {
					case 0:
						s.Keep(h)
						want[owner+":month:202607"] += 3
					case 1:
						s.GiveBack(h, noon, []limit.Counter{quota(owner, -3)})
					}
				}
				if rng.IntN(2) == 0 {
					l.arrive()
				}
				_ = s.takeBackRound(t.Context()) // what fails is tried again
				if _, err := s.stretch(t.Context()); err != nil {
					s.spool.Rewind()
				}
				killed(t, s)
			}
			settle(t, open(t, dir, l, nil))
			l.arrive()
			l.want(t, want)
		})
	}
}

// A slot that was torn by a kill is no hold, whether its request was being
// charged or what it may have been charged was being written anew.
func TestTornSlotsAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		s := open(t, dir, l, nil)
		for _, open := range []bool{false, true} {
			h := decide(t, s, ofA(7))
			if _, err := s.holds.file.WriteAt([]byte("torn"), place(h.slot)+headBytes+5); err != nil {
				t.Fatal(err)
			}
			if open {
				s.open.add(openSlot{slot: h.slot})
			}
		}
		if err := s.takeBackRound(t.Context()); err != nil || s.Pending() != 0 {
			t.Errorf("%v, %d pending", err, s.Pending())
		}
		killed(t, s)
		settle(t, open(t, dir, l, nil))
		l.want(t, map[string]int64{julyOfA: 14})
	})
}

// Slots of places far apart are used apart, or each slot had a note in each place.
func TestSlotsOfPlacesAreApart(t *testing.T) {
	s := open(t, t.TempDir(), newLedger(), nil)
	defer s.Close()
	used := map[int][]int{}
	for place := range 2 * slotClasses {
		slot, _, _ := s.holds.next(place)
		if err := s.holds.free(slot); err != nil {
			t.Fatal(err)
		}
		used[slot] = append(used[slot], place)
	}
	if len(used) != slotClasses || len(used[1]) != 2 {
		t.Errorf("%v", used)
	}
}

// BenchmarkHold is what the charge of a rule with refundOn costs the gateway, on
// a store that costs nothing.
func BenchmarkHold(b *testing.B) {
	s, err := Open(Options{Dir: b.TempDir(), SizeBytes: 1 << 20, Gateway: "gw", Store: nothing{}, Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	counters := ofA(1)
	b.ReportAllocs()
	for b.Loop() {
		_, h, err := s.Decide(b.Context(), counters, first)
		if err != nil || h.slot == 0 {
			b.Fatal(err)
		}
		s.Keep(h)
	}
}

// nothing is a store that lets everything pass.
type nothing struct{ Store }

func (nothing) Clock() time.Time { return time.Now() }
func (nothing) Place(string) int { return 0 }
func (nothing) DecideNoted(context.Context, []limit.Counter, limit.Note) (limit.Decision, bool, error) {
	return limit.Decision{Allowed: true}, false, nil
}
