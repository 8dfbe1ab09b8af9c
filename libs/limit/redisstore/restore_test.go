package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// restoring asserts that a decision was refused as one on quotas not known to be whole.
func (b *bench) restoring(counters ...limit.Counter) {
	b.t.Helper()
	_, err := b.Decide(b.t.Context(), counters)
	if !errors.Is(err, limit.ErrRestoring) || !errors.Is(err, limit.ErrUnavailable) {
		b.t.Fatalf("error %v, want ErrRestoring and ErrUnavailable", err)
	}
}

func (b *bench) declareWhole() {
	b.t.Helper()
	if err := DeclareWhole(b.t.Context(), b.client, "p:"); err != nil {
		b.t.Fatal(err)
	}
}

func TestWithoutMarkerNoQuotaIsCharged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.decide(withCost(quota(100), 40), withCost(fixed(100), 40))
	b.server.Del("p:" + markerKey)
	b.restoring(quota(100))
	b.restoring(withCost(quota(100), 0)) // nor looked at
	b.restoring(withCost(quota(100), -1))
	b.restoring(quota(100), fixed(100)) // all or nothing
	b.restoring(wallet(5))
	if st := b.decide(fixed(100)).States[0]; st.Remaining != 59 {
		t.Errorf("a rate alone: %+v", st)
	}
	if !b.Available() {
		t.Error("the breaker took it for an outage")
	}
	for range 2 { // it is refused before its number is remembered
		_, err := b.Settle(t.Context(), "gw", 7, []limit.Counter{quota(100)})
		if !errors.Is(err, limit.ErrRestoring) {
			t.Fatalf("settlement: %v", err)
		}
	}
	b.declareWhole()
	for range 2 {
		if _, err := b.Settle(t.Context(), "gw", 7, []limit.Counter{quota(100)}); err != nil {
			t.Fatal(err)
		}
	}
	if st := b.decide(withCost(quota(100), 0)).States[0]; st.Consumed != 41 {
		t.Errorf("after the restore: %+v", st)
	}
	if n := b.Stats().Restoring; n != 7 {
		t.Errorf("%d decisions were counted as restoring, want 7", n)
	}
}

// What marks no whole Redis: another process's marker, an unsealed one, what
// was never a marker.
func TestOtherMarkersAreNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	whole, err := b.server.Get("p:" + markerKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, marker := range []string{"", ":", "1" + whole[1:], unsealed + whole, whole[:40], whole[1:]} {
		if err := b.server.Set("p:"+markerKey, marker); err != nil {
			t.Fatal(err)
		}
		b.restoring(quota(100))
	}
	b.server.Del("p:" + markerKey)
	if _, err := b.server.Lpush("p:"+markerKey, whole); err != nil {
		t.Fatal(err)
	}
	b.restoring(quota(100))
}

func TestDeletedCounterComesBackWithTheNextCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]limit.Counter{"renewing": quota(50), "prepaid": wallet(50)} {
		b := newBench(t)
		b.decide(withCost(c, 50))
		b.decide(withCost(c, -10))
		for _, key := range b.keys() {
			b.server.Del(key)
		}
		d := b.decide(withCost(c, 11)) // denied, and yet it comes back
		if st := d.States[0]; d.Allowed || st.Consumed != 50 || st.Refunded != 10 || st.Remaining != 10 {
			t.Fatalf("%s: %+v", name, st)
		}
		other := newStore(t, b.client, Options{KeyPrefix: "p:", Now: b.Store.now})
		if d, err := other.Decide(t.Context(), []limit.Counter{withCost(c, 11)}); err != nil || d.Allowed {
			t.Fatalf("%s, another gateway: %+v, %v", name, d, err)
		}
		for _, key := range b.keys() {
			if c.Renews() && b.server.TTL(key) == 0 {
				t.Errorf("%s has no expiry", key)
			}
		}
		if n := b.passes(20, c); n != 10 {
			t.Errorf("%s: %d passed, want the 10 that were left", name, n)
		}
	}
}

// handIn goes one round of what Run does.
func (b *bench) handIn(a *attendance) { b.attend(b.t.Context(), a) }

// A gateway that missed a whole restore charges nothing before it has handed in
// what it knows.
func TestNothingIsChargedBeforeTotalsAreHandedIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := newAttendance()
	defer a.end()
	b.handIn(a)
	b.decide(withCost(quota(100), 90))
	b.server.FlushAll()
	b.declareWhole() // by a keeper that did not wait for it
	b.restoring(quota(100))
	select {
	case <-b.attention:
	default:
		t.Error("Run is not called to look")
	}
	b.handIn(a)
	if n := b.passes(20, quota(100)); n != 10 {
		t.Errorf("%d passed, want 10", n)
	}
	if !b.Whole() {
		t.Error("not whole")
	}
}

// Six restores give what one does, whoever hands in what, and newer use stays.
func TestSixRestoresGiveWhatOneDoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := NewRestorer(b.client, "p:")
	known := []Known{
		{Counter: "{t:a}:t::m:quota:month:202607", Totals: Totals{Consumed: 30, Refunded: 2}, Expires: noon.Add(40 * 24 * time.Hour)},
		{Counter: "{t:a}:t::w:quota:prepaid", Totals: Totals{Consumed: 9, Refunded: 1, Forfeited: 3}},
		{Counter: "{t:a}:t::d:quota:day:20260723", Totals: Totals{Consumed: 5, Carried: 7}, Rolls: true, Expires: noon.Add(96 * time.Hour)},
	}
	prepaid := wallet(100)
	prepaid.Key = "{t:a}:t::w:quota:prepaid"
	for i := range 6 {
		if _, err := r.Raise(t.Context(), known); err != nil {
			t.Fatal(err)
		}
		st := b.decide(withCost(quota(100), 0), withCost(prepaid, 0)).States
		if st[0].Consumed != 30+int64(i) || st[0].Refunded != 2 || st[1].Consumed != 9 || st[1].Refunded != 1 || st[1].Forfeited != 3 {
			t.Fatalf("restore %d: %+v", i, st)
		}
		b.decide(quota(100)) // traffic meanwhile is kept
	}
	if carried, err := b.server.Get("p:{t:a}:t::d:quota:day:20260723:o"); err != nil || carried != "7" {
		t.Errorf("carried %q, %v", carried, err)
	}
	if b.server.TTL("p:{t:a}:t::m:quota:month:202607:r") == 0 || b.server.TTL("p:{t:a}:t::w:quota:prepaid:c") != 0 {
		t.Error("a period's key without expiry, or a wallet's with one")
	}
}

// A restore is sealed for the incarnation it was begun for, and for no other.
func TestSealOfAnotherIncarnationFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	r := NewRestorer(b.client, "p:")
	begin := func() Process {
		t.Helper()
		all, err := r.Look(ctx, true)
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Begin(ctx, all[0])
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	b.server.FlushAll()
	first := begin()
	if twin := begin(); twin.Marker != first.Marker {
		t.Fatalf("another keeper does not join: %s, %s", first.Marker, twin.Marker)
	}
	b.server.FlushAll()
	if err := r.Seal(ctx, first); err == nil {
		t.Fatal("sealed after its data was lost again")
	}
	second := begin()
	if err := r.Seal(ctx, first); err == nil || second.Marker == first.Marker {
		t.Fatal("sealed in the middle of another restore")
	}
	b.restoring(quota(1))
	for range 2 { // a repeat does no harm
		if err := r.Seal(ctx, second); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := r.Look(ctx, true); err != nil || !all[0].Whole || all[0].Marker != second.Marker {
		t.Fatalf("%+v, %v", all, err)
	}
	b.decide(quota(1))
}

func TestGatewaysSayThatTheyAreThere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := NewRestorer(b.client, "p:")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	gateways := func() []Gateway {
		t.Helper()
		all, err := r.Look(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		found, _, err := r.Gateways(t.Context(), all[0])
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 1 && found[0].Marker != all[0].Marker {
			return nil // not handed in yet
		}
		return found
	}
	deadline := time.Now().Add(10 * time.Second)
	for len(gateways()) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("it never came")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if left := gateways(); len(left) != 0 {
		t.Fatalf("%+v after it left", left)
	}
}

func TestMemoryForgetsWhatIsOldest(t *testing.T) {
	t.Parallel()
	m := newMemory(memoryShards * 8)
	for i := range int64(10_000) {
		m.learn("often", seen{consumed: i}, "", Units{})
		m.learn(string(rune('a'+i)), seen{consumed: 1}, "", Units{})
	}
	if n := len(m.floors(0, func(string) bool { return true })); n > memoryShards*8 {
		t.Errorf("%d quotas remembered", n)
	}
	if k := m.known("often"); k.consumed != 9999 {
		t.Errorf("what is used all the time was forgotten: %+v", k)
	}
	m.learn("often", seen{consumed: 5, refunded: 7}, "", Units{})
	if k := m.known("often"); k.consumed != 9999 || k.refunded != 7 {
		t.Errorf("a late answer: %+v", k)
	}
}
