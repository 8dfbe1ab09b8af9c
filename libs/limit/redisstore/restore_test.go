package redisstore

import (
	"errors"
	"testing"

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
	declareWhole(b.t, b.client, "p:")
}

func TestWithoutMarkerNoQuotaIsCharged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.decide(withCost(quota(100), 40), withCost(fixed(100), 40))
	b.server.Del("p:epoch")
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
		_, err := b.Settle(t.Context(), limit.Once{ID: "gw", Seq: 7}, []limit.Counter{quota(100)})
		if !errors.Is(err, limit.ErrRestoring) {
			t.Fatalf("settlement: %v", err)
		}
	}
	b.declareWhole()
	for range 2 {
		if _, err := b.Settle(t.Context(), limit.Once{ID: "gw", Seq: 7}, []limit.Counter{quota(100)}); err != nil {
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
	whole, err := b.server.Get("p:epoch")
	if err != nil {
		t.Fatal(err)
	}
	for _, marker := range []string{"", ":", "1" + whole[1:], "?" + whole, whole[:40], whole[1:]} {
		if err := b.server.Set("p:epoch", marker); err != nil {
			t.Fatal(err)
		}
		b.restoring(quota(100))
	}
	b.server.Del("p:epoch")
	if _, err := b.server.Lpush("p:epoch", whole); err != nil {
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

// A gateway that missed a whole restore charges nothing before it has handed in
// what it knows.
func TestNothingIsChargedBeforeTotalsAreHandedIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	reported := map[string]string{}
	b.sync(t.Context(), reported)
	b.decide(withCost(quota(100), 90))
	b.server.FlushAll()
	b.declareWhole() // by a keeper that did not wait for it
	b.restoring(quota(100))
	select {
	case <-b.attention:
	default:
		t.Error("Run is not called to look")
	}
	b.sync(t.Context(), reported)
	if n := b.passes(20, quota(100)); n != 10 {
		t.Errorf("%d passed, want 10", n)
	}
	if !b.Whole() {
		t.Error("not whole")
	}
}

func TestMemoryForgetsWhatIsOldest(t *testing.T) {
	t.Parallel()
	m := newMemory(memoryShards * 8)
	for i := range int64(10_000) {
		m.learn("often", seen{consumed: i})
		m.learn(string(rune('a'+i)), seen{consumed: 1})
	}
	if n := len(m.floors(0, func(string) bool { return true })); n > memoryShards*8 {
		t.Errorf("%d quotas remembered", n)
	}
	if k := m.known("often"); k.consumed != 9999 {
		t.Errorf("what is used all the time was forgotten: %+v", k)
	}
	m.learn("often", seen{consumed: 5, refunded: 7})
	if k := m.known("often"); k.consumed != 9999 || k.refunded != 7 {
		t.Errorf("a late answer: %+v", k)
	}
}
