package reserve

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

func (b *bench) check(what string, counters []limit.Counter, want ...int64) {
	b.t.Helper()
	if got := b.used(counters...); !slices.Equal(got, want) {
		b.t.Fatalf("%s: %d used, want %d", what, got, want)
	}
}

func TestReservationsComeToWhatTheyCost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	counters := []limit.Counter{b.quota(100), wallet(100), rate(100), bucket(100), b.quota(100)}
	counters[4].Key = "{t:acme}:t::requests:quota"
	for _, c := range []struct {
		name   string
		end    func(id string) (Reservation, bool, error)
		state  State
		cost   int64 // after it, of the request's cost
		own    int64 // of the rule with a cost of its own
		amount int64
	}{
		{"less", func(id string) (Reservation, bool, error) { return b.books[1].Commit(t.Context(), ofAcme, id, 4) }, Committed, 4, 3, 4},
		{"equal", func(id string) (Reservation, bool, error) { return b.books[0].Commit(t.Context(), ofAcme, id, 10) }, Committed, 10, 3, 10},
		{"more", func(id string) (Reservation, bool, error) { return b.books[0].Commit(t.Context(), ofAcme, id, 15) }, Committed, 15, 3, 15},
		{"nothing", func(id string) (Reservation, bool, error) { return b.books[0].Commit(t.Context(), ofAcme, id, 0) }, Committed, 0, 3, 0},
		{"release", func(id string) (Reservation, bool, error) { return b.books[1].Release(t.Context(), ofAcme, id) }, Released, 0, 0, 0},
		{"expiry", func(id string) (Reservation, bool, error) {
			b.wait(time.Minute - time.Microsecond)
			if n := b.sweep(0); n != 0 {
				t.Fatal("it expired before its time")
			}
			b.wait(time.Microsecond)
			if n := b.sweep(1) + b.sweep(0); n != 1 {
				t.Fatalf("%d expired", n)
			}
			r, err := b.books[0].Get(t.Context(), ofAcme, id)
			return r, false, err
		}, Expired, 0, 0, 0},
	} {
		before := b.used(counters...)
		toldBefore := b.tolds("m0")
		m := b.mustReserve(wish{id: c.name, cost: 10, counters: counters, own: map[int]int64{4: 3}})
		if m.State != Reserved || m.ExpiresAt() != b.now.Add(time.Minute) || m.Decision.States[0].Consumed == 0 {
			t.Fatalf("%s: %+v", c.name, m)
		}
		r, repeated, err := c.end(c.name)
		if err != nil || repeated || r.State != c.state || r.EndedAt != b.now {
			t.Fatalf("%s: %+v, %t, %v", c.name, r, repeated, err)
		}
		for i := range before[:4] {
			before[i] += c.cost
		}
		before[4] += c.own
		b.check(c.name, counters, before...)
		if got := b.tolds("m0") - toldBefore; got != c.amount {
			t.Errorf("%s: %d units told, want %d", c.name, got, c.amount)
		}
		if b.due() != 0 {
			t.Errorf("%s is still due", c.name)
		}
	}
	if b.tolds("m4") != 4*3 {
		t.Errorf("%d told of the rule with a cost of its own", b.tolds("m4"))
	}
}

// What ended a reservation holds: a repeat finds it, anything else is told so.
func TestAnEndIsTheOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.quota(1000)
	for i, step := range []struct {
		id       string
		end      string // commit, release
		cost     int64
		repeated bool
		ended    State // of an EndedError
		used     int64
	}{
		{id: "a", end: "commit", cost: 4, used: 4 + 10 + 10},
		{id: "a", end: "commit", cost: 4, repeated: true, used: 4 + 10 + 10},
		{id: "a", end: "commit", cost: 5, repeated: true, ended: Committed, used: 4 + 10 + 10},
		{id: "a", end: "release", repeated: true, ended: Committed, used: 4 + 10 + 10},
		{id: "b", end: "release", used: 4 + 10},
		{id: "b", end: "release", repeated: true, used: 4 + 10},
		{id: "b", end: "commit", cost: 4, repeated: true, ended: Released, used: 4 + 10},
		{id: "c", end: "release", repeated: true, ended: Expired, used: 4},
		{id: "c", end: "commit", cost: 10, repeated: true, ended: Expired, used: 4},
	} {
		if i == 0 {
			for _, id := range []string{"a", "b", "c"} {
				b.mustReserve(wish{id: id, cost: 10, counters: []limit.Counter{q}})
			}
		}
		if step.id == "c" && !step.ended.Ended() || i == 7 {
			b.wait(time.Minute)
			b.sweep(0)
		}
		book := b.books[i%2]
		var r Reservation
		var repeated bool
		var err error
		if step.end == "commit" {
			r, repeated, err = book.Commit(t.Context(), ofAcme, step.id, step.cost)
		} else {
			r, repeated, err = book.Release(t.Context(), ofAcme, step.id)
		}
		var ended *EndedError
		if errors.As(err, &ended) != (step.ended != None) || ended == nil && err != nil || repeated != step.repeated {
			t.Fatalf("%d: %+v, %t, %v", i, r, repeated, err)
		}
		if ended != nil && (ended.State != step.ended || ended.EndedAt.IsZero()) {
			t.Errorf("%d: %v", i, ended)
		}
		b.check(step.id+" "+step.end, []limit.Counter{q}, step.used)
	}
	_, err := b.reserve(1, wish{id: "a", cost: 10, counters: []limit.Counter{q}})
	if ended := new(EndedError); !errors.As(err, &ended) || ended.Committed != 4 {
		t.Errorf("reserved once more: %v", err)
	}
}

func TestWhatIsThereAlready(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := wish{id: "a", cost: 10, counters: []limit.Counter{b.quota(1000)}, request: "x"}
	first := b.mustReserve(w)
	b.wait(time.Second)
	again, err := b.reserve(1, w)
	if err != nil || !again.Repeated || again.At != first.At || again.Until != first.Until || again.State != Reserved {
		t.Errorf("again: %+v, %v", again, err)
	}
	w.request = "y"
	if _, err := b.reserve(1, w); !errors.Is(err, ErrAnother) {
		t.Errorf("another request: %v", err)
	}
	for what, err := range map[string]error{
		"commit of another tenant's":  second(b.books[0].Commit(t.Context(), Caller{Tenant: "globex"}, "a", 1)),
		"release of another tenant's": second(b.books[0].Release(t.Context(), Caller{Tenant: "globex"}, "a")),
		"commit of none":              second(b.books[0].Commit(t.Context(), ofAcme, "b", 1)),
		"release of none":             second(b.books[0].Release(t.Context(), ofAcme, "b")),
	} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := b.books[0].Get(t.Context(), Caller{Tenant: "globex"}, "a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("another tenant's: %v", err)
	}
	if _, _, err := b.books[0].Commit(t.Context(), ofAcme, "a", 1_000_001); !errors.Is(err, ErrTooMuch) {
		t.Errorf("too much: %v", err)
	}
	b.check("after all that", w.counters, 10)
}

func second(_ Reservation, _ bool, err error) error { return err }

// What is denied leaves no trace, and may be tried again by the same id.
func TestDeniedLeavesNoTrace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := wish{id: "a", cost: 10, counters: []limit.Counter{rate(5), b.quota(100)}}
	m, err := b.reserve(0, w)
	if err != nil || m.Decision.Allowed || m.Decision.States[0].Allowed || !m.Decision.States[1].Allowed {
		t.Fatalf("%+v, %v", m, err)
	}
	b.check("denied", w.counters, 0, 0)
	for _, key := range b.server.Keys() {
		if key != prefix+"epoch" {
			t.Errorf("key %s is left", key)
		}
	}
	if _, err := b.books[0].Get(t.Context(), ofAcme, "a"); !errors.Is(err, ErrUnknown) {
		t.Errorf("it is there: %v", err)
	}
	w.counters[0].Limit = 10
	b.mustReserve(w)
	b.check("at last", w.counters, 10, 10)
}

// The units belong to the period and the window they were reserved in, however
// late the end comes.
func TestAnEndBelongsToThePeriodOfTheCharge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.wait(time.Date(2026, 7, 31, 23, 59, 30, 0, time.UTC).Sub(b.now))
	q, w := b.quota(100), rate(100)
	rolling := q
	rolling.Key, rolling.Rollover, rolling.Since = "{t:acme}:t::rolled:quota", 50, noon.AddDate(0, -3, 0)
	for _, id := range []string{"less", "more", "gone"} {
		b.mustReserve(wish{id: id, cost: 10, counters: []limit.Counter{q, w, rolling}})
	}
	b.wait(time.Minute)
	for id, cost := range map[string]int64{"less": 4, "more": 13} {
		if _, _, err := b.books[0].Commit(t.Context(), ofAcme, id, cost); err != nil {
			t.Fatal(err)
		}
	}
	b.sweep(0)
	b.check("in August", []limit.Counter{q, w}, 0, 0)
	july, err := b.client.MGet(t.Context(), "p:{t:acme}:t::tokens:quota:month:202607:c", "p:{t:acme}:t::tokens:quota:month:202607:r").Result()
	if err != nil || july[0] != "33" || july[1] != "16" {
		t.Errorf("July: %v, %v", july, err)
	}
	if b.tolds("m0") != 17 {
		t.Errorf("%d told", b.tolds("m0"))
	}
	for id := range b.told {
		for _, a := range b.told[id].Amounts {
			if a.Metric == "m0" && a.State != nil && a.State.Key != "{t:acme}:t::tokens:quota:month:202607" {
				t.Errorf("told of %s", a.State.Key)
			}
		}
	}
}

// A reservation that begins in the last instant of a period and is charged in
// the next one belongs to that.
func TestAPeriodEndsBetweenIntentAndCharge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.quota(100)
	q.Calendar = calendar(t, period.Spec{Unit: "hour"})
	b.books[0].die = func(at string) error {
		if at == pointIntent && b.clock().Hour() == 12 {
			b.wait(time.Hour)
		}
		return nil
	}
	m := b.mustReserve(wish{id: "a", cost: 10, ttl: 2 * time.Hour, counters: []limit.Counter{q}})
	if m.ReservedAt().Hour() != 13 || m.Decision.States[0].Key != "{t:acme}:t::tokens:quota:hour:2026072313" {
		t.Fatalf("reserved at %s in %s", m.ReservedAt(), m.Decision.States[0].Key)
	}
	if _, _, err := b.books[0].Release(t.Context(), ofAcme, "a"); err != nil || b.due() != 0 {
		t.Fatalf("%d are due, %v", b.due(), err)
	}
	b.check("released", []limit.Counter{q}, 0)
}

func TestOverdraftMayGrowByWhatIsCommitted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := wallet(100)
	w.Algorithm = limit.OverdraftQuota
	b.mustReserve(wish{id: "a", cost: 90, counters: []limit.Counter{w}})
	b.mustReserve(wish{id: "b", cost: 20, counters: []limit.Counter{w}}) // to -10
	if m, err := b.reserve(0, wish{id: "c", cost: 1, counters: []limit.Counter{w}}); err != nil || m.Decision.Allowed {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, _, err := b.books[0].Commit(t.Context(), ofAcme, "b", 50); err != nil {
		t.Fatal(err)
	}
	b.check("committed", []limit.Counter{w}, 140)
}

// Shadow rules are charged what they would let pass, corrected with the rest,
// and deny nothing.
func TestShadowRulesFollow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tight, wide := b.quota(5), b.quota(1000)
	tight.Key, wide.Key = "{t:acme}:t::tight:quota-shadow", "{t:acme}:t::wide:quota-shadow"
	counters := []limit.Counter{b.quota(100), tight, wide}
	shadow := map[int]bool{1: true, 2: true}
	m := b.mustReserve(wish{id: "a", cost: 10, counters: counters, shadow: shadow})
	if m.Decision.States[1].Allowed || !m.Decision.States[2].Allowed {
		t.Fatalf("%+v", m.Decision.States)
	}
	b.check("reserved", counters, 10, 0, 10)
	if _, _, err := b.books[1].Commit(t.Context(), ofAcme, "a", 3); err != nil {
		t.Fatal(err)
	}
	b.check("committed", counters, 3, 0, 3)
	// Another gateway that ends a reservation whose own has told nothing finds out
	// which shadow rules were charged.
	b.dieAt(0, pointShadows)
	if _, err := b.reserve(0, wish{id: "b", cost: 10, counters: counters, shadow: shadow}); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	if _, _, err := b.books[1].Commit(t.Context(), ofAcme, "b", 4); err != nil {
		t.Fatal(err)
	}
	b.check("another one", counters, 7, 0, 7)
	if b.tolds("m0") != 7 || b.tolds("m1") != 0 || b.tolds("m2") != 7 {
		t.Errorf("told %d, %d, %d", b.tolds("m0"), b.tolds("m1"), b.tolds("m2"))
	}
	// A denied one leaves shadow rules alone.
	if m, err := b.reserve(1, wish{id: "c", cost: 94, counters: counters, shadow: shadow}); err != nil || m.Decision.Allowed {
		t.Fatalf("%+v, %v", m, err)
	}
	b.check("denied", counters, 7, 0, 7)
}

// A day after its end an id may be used anew.
func TestIdsCanBeUsedAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.quota(100)
	b.mustReserve(wish{id: "a", cost: 10, counters: []limit.Counter{q}})
	if _, _, err := b.books[0].Commit(t.Context(), ofAcme, "a", 4); err != nil {
		t.Fatal(err)
	}
	b.wait(keepEnded)
	for _, key := range b.server.Keys() {
		if n := (name{acme, "a"}); key == prefix+n.state() || key == prefix+n.records() {
			t.Errorf("%s is left", key)
		}
	}
	b.mustReserve(wish{id: "a", cost: 10, counters: []limit.Counter{q}})
	b.check("anew", []limit.Counter{q}, 14)
	if len(b.told) != 3 {
		t.Errorf("%d steps were told", len(b.told))
	}
}

func TestBrokenCounterDoesNotKeepTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	counters := []limit.Counter{b.quota(100), rate(100)}
	b.mustReserve(wish{id: "a", cost: 10, counters: counters})
	b.server.Del("p:" + rate(1).Key)
	if _, err := b.server.Lpush("p:"+rate(1).Key, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.reserve(0, wish{id: "b", cost: 10, counters: counters}); !errors.Is(err, limit.ErrCounterBroken) {
		t.Fatalf("reserved on a broken counter: %v", err)
	}
	b.wait(time.Minute)
	if b.sweep(0) != 1 || b.due() != 0 {
		t.Fatal("it is not swept")
	}
	b.check("swept", counters[:1], 0)
}

// What the index should not hold is removed, and keeps nobody from his turn.
func TestSweepPassesBadEntries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	none := entry{name{acme, "b"}, 9} // it has no record
	for _, member := range []string{"", "x", "1|a", "1||acme", none.String()} {
		for _, shard := range []int{none.shardNumber(), none.shardNumber() ^ 1} {
			if _, err := b.server.ZAdd("p:"+dueKey(shard), 1, member); err != nil {
				t.Fatal(err)
			}
		}
	}
	n := name{acme, "c"}
	b.server.HSet("p:"+n.records(), "7", "no record")
	if _, err := b.server.ZAdd("p:"+n.shard(), 7, entry{n, 7}.String()); err != nil {
		t.Fatal(err)
	}
	b.sweep(0)
	if b.due() != 1 {
		t.Fatalf("%d are due", b.due())
	}
	score, err := b.server.ZScore("p:"+n.shard(), entry{n, 7}.String())
	if err != nil || int64(score) != b.now.Add(postponed).UnixMicro() {
		t.Errorf("what cannot be ended is due at %f, %v", score, err)
	}
}
