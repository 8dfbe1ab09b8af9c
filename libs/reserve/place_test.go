package reserve

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// bounded has books of a bench let a tenant have so many open.
func (b *bench) bounded(most int) *bench {
	for _, book := range b.books {
		book.o.MaxOpen = most
	}
	return b
}

// places is how many of acme's places are taken.
func (b *bench) places() int64 {
	b.t.Helper()
	n, err := b.client.ZCard(b.t.Context(), prefix+name{tenant: acme}.places()).Result()
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

func (b *bench) takes(what string, want int64) {
	b.t.Helper()
	if n := b.places(); n != want {
		b.t.Errorf("%s: %d places are taken, want %d", what, n, want)
	}
}

// As many are open as may be, on any book; each way to end one makes room.
func TestATenantHasSoManyOpen(t *testing.T) {
	t.Parallel()
	b := newBench(t).bounded(3)
	q := b.quota(1000)
	of := func(id string) wish { return wish{id: id, cost: 10, counters: []limit.Counter{q}} }
	for _, id := range []string{"a", "b", "c"} {
		b.mustReserve(of(id))
	}
	full := func(what string) {
		t.Helper()
		keys := len(b.server.Keys())
		for book := range b.books {
			if _, err := b.reserve(book, of("more")); !errors.Is(err, ErrTooMany) {
				t.Fatalf("%s: one more: %v", what, err)
			}
		}
		if n := len(b.server.Keys()); n != keys || b.due() != 3 {
			t.Errorf("%s: it left %d keys, %d are due", what, n-keys, b.due())
		}
		b.takes(what, 3)
	}
	full("three are open")
	if m, err := b.reserve(1, of("a")); err != nil || !m.Repeated {
		t.Errorf("a repeat of what is open: %+v, %v", m, err)
	}
	r, counters := of("other").record()
	r.Tenant, counters[0].Key = "globex", "{t:globex}:t::tokens:quota"
	if m, err := b.books[0].Reserve(t.Context(), r, time.Hour, counters, func(Made) {}); err != nil || !m.Decision.Allowed {
		t.Errorf("another tenant's: %+v, %v", m, err)
	}
	if _, _, err := b.books[1].Release(t.Context(), Caller{Tenant: "globex"}, "other"); err != nil {
		t.Fatal(err)
	}
	for i, end := range []func(id string) error{
		func(id string) error { return second(b.books[1].Commit(t.Context(), ofAcme, id, 15)) },
		func(id string) error { return second(b.books[0].Release(t.Context(), ofAcme, id)) },
	} {
		if err := end([]string{"a", "b"}[i]); err != nil {
			t.Fatal(err)
		}
		b.takes("one has ended", 2)
		b.mustReserve(of(fmt.Sprint("next", i)))
		full("room was made, and taken")
	}
	b.wait(time.Minute)
	full("they are over, and not swept") // what is not given back yet takes its place
	if n := b.sweep(1); n != 3 {
		t.Fatalf("%d expired", n)
	}
	b.takes("all are swept", 0)
	b.mustReserve(of("at last"))
}

// What the counters deny takes no place, nor does what was lost track of.
func TestOnlyOpenOnesTakePlaces(t *testing.T) {
	t.Parallel()
	b := newBench(t).bounded(1)
	q := b.quota(5)
	for range 3 {
		if m, err := b.reserve(0, wish{id: "a", cost: 10, counters: []limit.Counter{q}}); err != nil || m.Decision.Allowed {
			t.Fatalf("%+v, %v", m, err)
		}
		b.takes("denied", 0)
	}
	b.dieAt(0, pointIntent)
	if _, err := b.reserve(0, wish{id: "b", cost: 1, counters: []limit.Counter{q}}); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	if _, err := b.reserve(1, wish{id: "c", cost: 1, counters: []limit.Counter{q}}); !errors.Is(err, ErrTooMany) {
		t.Fatalf("one may still be charged: %v", err)
	}
	for shard := range dueShards { // as a failover may lose it
		b.server.Del(prefix + dueKey(shard))
	}
	b.wait(time.Minute + keepPlace)
	if m, err := b.reserve(1, wish{id: "c", cost: 1, counters: []limit.Counter{q}}); err != nil || !m.Decision.Allowed {
		t.Fatalf("after an hour: %+v, %v", m, err)
	}
	b.takes("lost track of", 1)
}

// Where the index cannot be written, as where its node of a Cluster is away, tries
// take no places.
func TestTriesWithoutTheIndexTakeNoPlaces(t *testing.T) {
	t.Parallel()
	b := newBench(t).bounded(1)
	w := wish{id: "a", cost: 1, counters: []limit.Counter{b.quota(5)}}
	index := prefix + name{acme, "a"}.shard()
	if err := b.server.Set(index, "no index"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := b.reserve(0, w); !errors.Is(err, limit.ErrCounterBroken) {
			t.Fatalf("without the index: %v", err)
		}
		b.takes("without the index", 0)
	}
	b.server.Del(index)
	b.mustReserve(w)
	b.takes("with the index", 1)
}

// Whoever dies on the way leaves a place no longer than what it may have charged.
func TestWhoeverDiesGivesThePlaceBack(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		pointIntent, pointOthers, pointCharged, pointShadows, pointTold, pointNoted, pointEnded, pointFollowed, pointEndTold, pointCleared,
	} {
		b := newBench(t).bounded(1)
		w := wish{id: "a", cost: 10, counters: []limit.Counter{b.quota(100)}}
		b.dieAt(0, point)
		_, err := b.reserve(0, w)
		if err == nil {
			_, _, err = b.books[0].Commit(t.Context(), ofAcme, "a", 4)
		}
		if !errors.Is(err, errDied) {
			t.Fatalf("%s: %v", point, err)
		}
		if point != pointCleared {
			b.takes(point, 1)
		}
		b.wait(time.Minute)
		b.sweep(1)
		b.takes(point+", swept", 0)
	}
}

// Of many at once as many are charged as there are places.
func (b *bench) crowd(most int) {
	b.t.Helper()
	b.bounded(most)
	q := b.quota(100_000)
	var all sync.WaitGroup
	var made, full atomic.Int64
	for i := range 4 * most {
		all.Go(func() {
			switch m, err := b.reserve(i%2, wish{id: fmt.Sprint("crowd", i), cost: 1, ttl: time.Hour, counters: []limit.Counter{q}}); {
			case errors.Is(err, ErrTooMany):
				full.Add(1)
			case err != nil || !m.Decision.Allowed:
				b.t.Errorf("%+v, %v", m, err)
			default:
				made.Add(1)
			}
		})
	}
	all.Wait()
	if made.Load() != int64(most) || full.Load() != int64(3*most) {
		b.t.Errorf("%d were reserved and %d refused, of %d places", made.Load(), full.Load(), most)
	}
	b.takes("a crowd came", int64(most))
	b.check("a crowd came", []limit.Counter{q}, int64(most))
}

func TestManyOpenAtOnce(t *testing.T) {
	t.Parallel()
	newBench(t).crowd(25)
}

// A store that has lost everything knows again how many are open once they are
// brought back: those that have ended take no place, whatever else is known.
func TestPlacesAreRestored(t *testing.T) {
	t.Parallel()
	b := newBench(t).bounded(3)
	q := b.quota(1000)
	var kept []Kept
	for _, id := range []string{"open", "committed", "released", "other"} {
		if id == "other" {
			b.bounded(4)
		}
		made := b.mustReserve(wish{id: id, cost: 10, counters: []limit.Counter{q}})
		kept = append(kept, made.Kept())
		switch id {
		case "committed":
			r, _, err := b.books[0].Commit(t.Context(), ofAcme, id, 4)
			kept[1].Number, kept[1].EndedAt = r.number(), r.EndedAt.UnixMicro()
			if err != nil {
				t.Fatal(err)
			}
		case "released": // of whose end no event has come
			if _, _, err := b.books[0].Release(t.Context(), ofAcme, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.bounded(2)
	for _, lost := range []bool{false, true} {
		if lost {
			b.server.FlushAll()
			kept[2].Number = int64(Released)
		}
		for range 2 {
			if err := Restore(t.Context(), b.client, prefix, b.clock(), kept); err != nil {
				t.Fatal(err)
			}
			if err := b.books[0].HandIn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		b.declareWhole()
		b.takes(fmt.Sprint("restored, lost: ", lost), 2)
	}
	if _, err := b.reserve(1, wish{id: "more", cost: 10, counters: []limit.Counter{q}}); !errors.Is(err, ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
	if _, _, err := b.books[1].Commit(t.Context(), ofAcme, "open", 4); err != nil {
		t.Fatal(err)
	}
	b.mustReserve(wish{id: "more", cost: 10, counters: []limit.Counter{q}})
}
