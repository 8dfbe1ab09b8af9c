package reserve

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
)

// listed reads a list from its beginning to its end: "tenant/id" of each.
func (b *bench) listed(tenant string, most int) (all []string) {
	b.t.Helper()
	for after := (Spot{}); ; {
		page, next, err := b.books[1].Open(b.t.Context(), tenant, after, most)
		if err != nil {
			b.t.Fatal(err)
		}
		if len(page) > most || next != (Spot{}) && len(page) < most {
			b.t.Fatalf("%d on a page of %d, the next is %+v", len(page), most, next)
		}
		for _, r := range page {
			if r.State != Reserved {
				b.t.Errorf("%s is %s", r.ID, r.State)
			}
			all = append(all, r.Tenant+"/"+r.ID)
		}
		if next == (Spot{}) {
			return all
		}
		after = next
	}
}

// lists holds what is open, of acme and, with globex's one, of all.
func (b *bench) lists(what string, acmes ...string) {
	b.t.Helper()
	for _, most := range []int{1, 3, 10} {
		if got := b.listed(acme, most); !slices.Equal(got, acmes) {
			b.t.Errorf("%s: %d a page, acme has %q, want %q", what, most, got, acmes)
		}
		all := b.listed("", most)
		slices.Sort(all)
		if want := slices.Sorted(slices.Values(append([]string{"globex/x"}, acmes...))); !slices.Equal(all, want) {
			b.t.Errorf("%s: %d a page, all are %q, want %q", what, most, all, want)
		}
	}
}

func (b *bench) reserveOfGlobex() {
	b.t.Helper()
	r, counters := wish{id: "x", cost: 1, counters: []limit.Counter{b.quota(10)}}.record()
	r.Tenant, counters[0].Key = "globex", "{t:globex}:t::tokens:quota"
	if m, err := b.books[0].Reserve(b.t.Context(), r, 23*time.Hour, counters, func(Made) {}); err != nil || !m.Decision.Allowed {
		b.t.Fatalf("%+v, %v", m, err)
	}
}

// What is open is listed, the first to fall due first, until it has ended; on a
// Cluster as on one Redis.
func (b *bench) listsOpen() {
	b.t.Helper()
	b.reserveOfGlobex()
	q := b.quota(1000)
	for i, ttl := range []int{5, 3, 4, 1, 2} {
		b.mustReserve(wish{id: fmt.Sprint("r", i), cost: 10, ttl: time.Duration(ttl) * time.Hour, counters: []limit.Counter{q}})
	}
	b.lists("five are open", "acme/r3", "acme/r4", "acme/r1", "acme/r2", "acme/r0")
	for _, err := range []error{
		second(b.books[0].Commit(b.t.Context(), ofAcme, "r1", 3)), second(b.books[0].Release(b.t.Context(), ofAcme, "r3")),
	} {
		if err != nil {
			b.t.Fatal(err)
		}
	}
	if m, err := b.reserve(0, wish{id: "dear", cost: 10_000, counters: []limit.Counter{q}}); err != nil || m.Decision.Allowed {
		b.t.Fatalf("%+v, %v", m, err)
	}
	b.lists("two have ended, one was denied", "acme/r4", "acme/r2", "acme/r0")
}

func TestWhatIsOpenIsListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.listsOpen()
	b.wait(2 * time.Hour)
	b.lists("one is past its time, and not swept", "acme/r4", "acme/r2", "acme/r0")
	b.sweep(0)
	b.lists("it is swept", "acme/r2", "acme/r0")
	if got := b.listed("nobody", 5); len(got) != 0 {
		t.Errorf("nobody has %q", got)
	}
}

// However far an attempt came when its gateway died, it is listed if it was charged
// and has not ended.
func TestListsWhereverSomebodyDied(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at   string
		open []string
	}{
		{pointIntent, nil}, {pointCharged, []string{"acme/a"}}, {pointTold, []string{"acme/a"}}, {pointNoted, []string{"acme/a"}},
	} {
		b := newBench(t)
		b.reserveOfGlobex()
		b.dieAt(0, c.at)
		if _, err := b.reserve(0, wish{id: "a", cost: 1, counters: []limit.Counter{b.quota(5)}}); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		b.lists("died when "+c.at, c.open...)
	}
	for _, at := range []string{pointEnded, pointEndTold} {
		b := newBench(t)
		b.reserveOfGlobex()
		b.mustReserve(wish{id: "a", cost: 1, counters: []limit.Counter{b.quota(5)}})
		b.dieAt(0, at)
		if err := second(b.books[0].Commit(t.Context(), ofAcme, "a", 1)); !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		b.lists("died when " + at)
	}
}

// Many that fall due in one microsecond are listed once, whatever the page; what is
// no reservation, or cannot be read, keeps no other from the list.
func TestListsPassBadEntries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reserveOfGlobex()
	var want []string
	for i := range 7 {
		id := fmt.Sprint("r", i)
		b.mustReserve(wish{id: id, cost: 1, counters: []limit.Counter{b.quota(50)}})
		want = append(want, "acme/"+id)
	}
	at := func(index, member string) {
		t.Helper()
		if err := b.client.ZAdd(t.Context(), prefix+index, redis.Z{Score: float64(noon.Add(time.Minute + keepPlace).UnixMicro()), Member: member}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	places := name{tenant: acme}.places()
	for _, member := range []string{"1|gone", "x|r1", "5", "7|b/d"} {
		at(places, member)
		at(dueKey(0), strings.Replace(member, "|r1", "|r1|acme", 1))
	}
	b.mustReserve(wish{id: "bad", cost: 1, counters: []limit.Counter{b.quota(50)}})
	if err := b.client.Set(t.Context(), prefix+name{acme, "bad"}.state(), "soon", 0).Err(); err != nil {
		t.Fatal(err)
	}
	b.lists("beside bad ones", want...)
}

// What may be lost is not said to be none.
func TestNothingIsListedWithoutAMarker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.FlushAll()
	for _, tenant := range []string{"", acme} {
		if open, _, err := b.books[0].Open(t.Context(), tenant, Spot{}, 5); !errors.Is(err, limit.ErrRestoring) {
			t.Errorf("of %q: %d are open, %v", tenant, len(open), err)
		}
	}
}
