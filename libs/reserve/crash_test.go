package reserve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// A gateway dies at each point on the way of a reservation; nobody repeats it,
// and the sweep of another gives back what was taken and tells all of it, once.
func TestWhoeverDiesIsSwept(t *testing.T) {
	t.Parallel()
	for _, point := range []string{pointIntent, pointOthers, pointCharged, pointShadows, pointTold, pointNoted} {
		b := newBench(t)
		counters := []limit.Counter{b.quota(100), rate(100)}
		b.dieAt(0, point)
		if _, err := b.reserve(0, wish{id: "a", cost: 10, counters: counters}); !errors.Is(err, errDied) {
			t.Fatalf("%s: %v", point, err)
		}
		b.wait(time.Minute)
		charged := point != pointIntent && point != pointOthers
		if n := b.sweep(1); (n == 1) != charged || b.due() != 0 {
			t.Fatalf("%s: %d expired, %d are due", point, n, b.due())
		}
		b.check(point, counters, 0, 0)
		if steps := len(b.told); b.tolds("m0") != 0 || steps != 0 != charged || charged && steps != 2 {
			t.Errorf("%s: %d steps told, %d units", point, steps, b.tolds("m0"))
		}
	}
}

// Dead on the way, the client asks again by the same id: charged once.
func TestWhoeverDiesIsRepeated(t *testing.T) {
	t.Parallel()
	for _, point := range []string{pointIntent, pointOthers, pointCharged, pointTold, pointNoted} {
		b := newBench(t)
		w := wish{id: "a", cost: 10, counters: []limit.Counter{b.quota(100), rate(100)}}
		b.dieAt(0, point)
		if _, err := b.reserve(0, w); !errors.Is(err, errDied) {
			t.Fatalf("%s: %v", point, err)
		}
		b.wait(time.Second)
		if _, err := b.reserve(1, w); err != nil {
			t.Fatalf("%s: %v", point, err)
		}
		b.check(point, w.counters, 10, 10)
		if _, _, err := b.books[1].Commit(t.Context(), ofAcme, "a", 7); err != nil {
			t.Fatal(err)
		}
		b.wait(time.Minute)
		b.sweep(1)
		b.check(point+", committed", w.counters, 7, 7)
		if b.tolds("m0") != 7 || len(b.told) != 2 || b.due() != 0 {
			t.Errorf("%s: %d steps told, %d units, %d due", point, len(b.told), b.tolds("m0"), b.due())
		}
	}
}

// Dead on the way to an end: the repeat of another gateway, or its sweep, does
// the rest, and says what was done.
func TestWhoeverDiesAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"repeat", "sweep"} {
		for _, point := range []string{pointEnded, pointFollowed, pointEndTold, pointCleared} {
			b := newBench(t)
			shadow := b.quota(100)
			shadow.Key = "{t:acme}:t::s:quota-shadow"
			counters := []limit.Counter{b.quota(100), rate(100), shadow}
			b.mustReserve(wish{id: "a", cost: 10, counters: counters, shadow: map[int]bool{2: true}})
			b.dieAt(0, point)
			if _, _, err := b.books[0].Commit(t.Context(), ofAcme, "a", 4); !errors.Is(err, errDied) {
				t.Fatalf("%s: %v", point, err)
			}
			if by == "repeat" {
				if r, repeated, err := b.books[1].Commit(t.Context(), ofAcme, "a", 4); err != nil || !repeated || r.Committed != 4 {
					t.Fatalf("%s: %+v, %t, %v", point, r, repeated, err)
				}
			}
			if by == "repeat" && b.due() != 0 {
				t.Errorf("%s, %s: %d are due", point, by, b.due())
			}
			b.wait(time.Minute)
			if n := b.sweep(1); n != 0 || b.due() != 0 {
				t.Errorf("%s, %s: %d expired, %d are due", point, by, n, b.due())
			}
			b.check(point, counters, 4, 4, 4)
			if b.tolds("m0") != 4 || b.tolds("m2") != 4 || len(b.told) != 2 {
				t.Errorf("%s, %s: %d steps told, %d units", point, by, len(b.told), b.tolds("m0"))
			}
		}
	}
}

// Who dies on the way of a reservation that has long to go leaves nothing untold
// for as long: what was lost and comes back by its totals would lack the step.
func TestWhatWhoeverDiedDidIsToldSoon(t *testing.T) {
	t.Parallel()
	for _, point := range []string{pointIntent, pointOthers, pointCharged, pointShadows, pointTold, pointNoted, pointEnded, pointFollowed, pointEndTold} {
		b := newBench(t)
		shadow := b.quota(100)
		shadow.Key = "{t:acme}:t::s:quota-shadow"
		w := wish{id: "a", cost: 10, counters: []limit.Counter{b.quota(100), shadow}, shadow: map[int]bool{1: true}, ttl: time.Hour}
		b.dieAt(0, point)
		_, err := b.reserve(0, w)
		if err == nil {
			_, _, err = b.books[0].Commit(t.Context(), ofAcme, "a", 4)
		}
		if !errors.Is(err, errDied) {
			t.Fatalf("%s: %v", point, err)
		}
		b.wait(untold)
		for range 2 { // the second finds nothing to do
			if n := b.sweep(1); n != 0 {
				t.Errorf("%s: %d expired", point, n)
			}
		}
		used, shadows, steps, due := int64(10), int64(10), 1, int64(1)
		switch point {
		case pointIntent, pointOthers:
			used, shadows, steps = 0, 0, 0
		case pointCharged:
			shadows = 0
		case pointEnded, pointFollowed, pointEndTold:
			used, shadows, steps, due = 4, 4, 2, 0
		}
		b.check(point, w.counters, used, shadows)
		if b.tolds("m0") != used || b.tolds("m1") != shadows || len(b.told) != steps || b.due() != due {
			t.Errorf("%s: %d and %d units in %d steps, %d due", point, b.tolds("m0"), b.tolds("m1"), len(b.told), b.due())
		}
		b.wait(time.Hour)
		b.sweep(1)
		if due == 1 {
			used, shadows = 0, 0
		}
		b.check(point+", due", w.counters, used, shadows)
		if b.tolds("m0") != used || b.tolds("m1") != shadows || b.due() != 0 {
			t.Errorf("%s, due: %d and %d units, %d due", point, b.tolds("m0"), b.tolds("m1"), b.due())
		}
	}
}

// A sweep that dies is followed by another one.
func TestWhoeverDiesSweeping(t *testing.T) {
	t.Parallel()
	for _, point := range []string{pointEnded, pointFollowed, pointEndTold, pointCleared} {
		b := newBench(t)
		q := b.quota(100)
		b.mustReserve(wish{id: "a", cost: 10, counters: []limit.Counter{q}})
		b.wait(time.Minute)
		b.dieAt(0, point)
		if _, _, err := b.books[0].Sweep(context.Background()); err != nil {
			t.Fatal(err)
		}
		b.wait(postponed)
		b.sweep(1)
		b.check(point, []limit.Counter{q}, 0)
		if r, err := b.books[1].Get(t.Context(), ofAcme, "a"); err != nil || r.State != Expired || b.tolds("m0") != 0 || len(b.told) != 2 || b.due() != 0 {
			t.Errorf("%s: %+v, %v, %d told, %d due", point, r, err, len(b.told), b.due())
		}
	}
}

// Released while its charge is still under way: it is never charged.
func TestReleaseBeforeTheCharge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := wish{id: "a", cost: 10, counters: []limit.Counter{b.quota(100)}}
	b.books[0].die = func(at string) error {
		if at == pointOthers {
			if r, repeated, err := b.books[1].Release(t.Context(), ofAcme, "a"); err != nil || repeated || r.State != Void {
				t.Errorf("%+v, %t, %v", r, repeated, err)
			}
			if _, _, err := b.books[1].Commit(t.Context(), ofAcme, "a", 1); !errors.As(err, new(*EndedError)) {
				t.Errorf("commit: %v", err)
			}
		}
		return nil
	}
	var ended *EndedError
	if _, err := b.reserve(0, w); !errors.As(err, &ended) || ended.State != Void {
		t.Fatalf("%v", err)
	}
	if _, repeated, err := b.books[1].Release(t.Context(), ofAcme, "a"); err != nil || !repeated {
		t.Errorf("released again: %t, %v", repeated, err)
	}
	b.check("released", w.counters, 0)
	if b.due() != 0 || len(b.told) != 0 {
		t.Errorf("%d due, %d told", b.due(), len(b.told))
	}
}

// Of many that ask for one id at once one is charged, and all are told of it.
func TestManyReserveByOneID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := wish{id: "a", cost: 10, counters: []limit.Counter{b.quota(1000), rate(1000)}}
	var first, repeats atomic.Int64
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			switch m, err := b.reserve(i%2, w); {
			case err != nil:
				t.Error(err)
			case m.Repeated:
				repeats.Add(1)
			default:
				first.Add(1)
			}
		})
	}
	all.Wait()
	if first.Load() != 1 || repeats.Load() != 63 || b.due() != 1 {
		t.Errorf("%d reserved, %d found it, %d due", first.Load(), repeats.Load(), b.due())
	}
	b.check("64 at once", w.counters, 10, 10)
}

// Commits, releases and sweeps at once: one of them ends it, and all say so.
func TestManyEndAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 8 {
		b := newBench(t)
		q := b.quota(1000)
		b.mustReserve(wish{id: "a", cost: 10, counters: []limit.Counter{q}})
		b.wait(time.Minute)
		var ended, expired atomic.Int64
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				var err error
				var repeated bool
				switch (i + round) % 3 {
				case 0:
					_, repeated, err = b.books[i%2].Commit(context.Background(), ofAcme, "a", int64(i))
				case 1:
					_, repeated, err = b.books[i%2].Release(context.Background(), ofAcme, "a")
				default:
					var n int
					n, _, err = b.books[i%2].Sweep(context.Background())
					expired.Add(int64(n))
					repeated = true
				}
				if err == nil && !repeated {
					ended.Add(1)
				}
				if err != nil && !errors.As(err, new(*EndedError)) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		r, err := b.books[0].Get(t.Context(), ofAcme, "a")
		if err != nil || ended.Load()+expired.Load() != 1 {
			t.Fatalf("%d ended it, %d swept it, %+v, %v", ended.Load(), expired.Load(), r, err)
		}
		want := int64(0)
		if r.State == Committed {
			want = r.Committed
		}
		b.check(r.State.String(), []limit.Counter{q}, want)
		b.sweep(0)
		if b.tolds("m0") != want || b.due() != 0 || len(b.told) != 2 {
			t.Errorf("%d told in %d steps, want %d; %d due", b.tolds("m0"), len(b.told), want, b.due())
		}
	}
}

// The last unit is had by one of many.
func TestLastUnitIsReservedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := wallet(1)
	var got atomic.Int64
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			m, err := b.reserve(i%2, wish{id: fmt.Sprint("r", i), cost: 1, counters: []limit.Counter{w, b.quota(100)}})
			if err != nil {
				t.Error(err)
			} else if m.Decision.Allowed {
				got.Add(1)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Errorf("%d have the last unit", got.Load())
	}
	b.check("the last unit", []limit.Counter{w, b.quota(100)}, 1, 1)
}

// Redis loses everything: until it is whole again nothing is done, and nothing is
// said not to be there.
func TestNothingIsKnownWithoutAMarker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := wish{id: "a", cost: 10, counters: []limit.Counter{rate(100)}}
	b.mustReserve(w)
	b.server.FlushAll()
	_, get := b.books[0].Get(t.Context(), ofAcme, "a")
	_, err := b.reserve(0, w)
	for _, err := range []error{
		get, err, second(b.books[0].Commit(t.Context(), ofAcme, "a", 1)), second(b.books[0].Release(t.Context(), ofAcme, "a")),
	} {
		if !errors.Is(err, limit.ErrUnavailable) || !errors.Is(err, limit.ErrRestoring) {
			t.Errorf("%v", err)
		}
	}
}
