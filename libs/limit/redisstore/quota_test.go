package redisstore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

func wallet(granted int64) limit.Counter {
	return limit.Counter{Key: "{t:a}:t::m:quota:prepaid", Algorithm: limit.PrepaidQuota, Granted: granted, Cost: 1}
}

func TestRolloverCarriesWhatIsLeftOnceUpToItsCap(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := renewing(100, period.Spec{Unit: period.NameDay})
	c.Rollover = 30
	day := func() limit.State {
		t.Helper()
		b.wait(24 * time.Hour)
		return b.decide(withCost(c, 0)).States[0]
	}
	if st := b.decide(withCost(c, 90)).States[0]; st.Carried != 0 || st.Remaining != 10 {
		t.Fatalf("the first day ever: %+v", st)
	}
	if st := day(); st.Carried != 10 || st.Limit != 110 || st.Remaining != 110 {
		t.Fatalf("10 were left: %+v", st)
	}
	b.decide(withCost(c, 45)) // 10 carried, 35 of 100: 65 are left
	if st := day(); st.Carried != 30 || st.Remaining != 130 {
		t.Fatalf("65 were left, cap 30: %+v", st)
	}
	b.decide(withCost(c, 130))
	if st := day(); st.Carried != 0 || st.Remaining != 100 {
		t.Fatalf("nothing was left: %+v", st)
	}
	b.decide(withCost(c, 100))
	// A late refund of yesterday does not change what today began with.
	refund := withCost(c, -20)
	refund.At = b.now.Add(-24 * time.Hour)
	if st := b.decide(refund).States[0]; st.Refunded != 20 || st.Key != "{t:a}:t::m:quota:day:20260726" && st.Key == "" {
		t.Fatalf("late refund: %+v", st)
	}
	if st := b.decide(withCost(c, 0)).States[0]; st.Carried != 0 || st.Remaining != 0 {
		t.Fatalf("today after yesterday's refund: %+v", st)
	}
}

func TestRolloverOfADayWithoutTraffic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := renewing(100, period.Spec{Unit: period.NameDay})
	c.Rollover = 30
	if st := b.decide(withCost(c, 0)).States[0]; st.Carried != 0 {
		t.Fatalf("not known since when: %+v", st)
	}
	c.Since = b.now.Add(-30 * time.Hour)
	if st := b.decide(withCost(c, 0)).States[0]; st.Carried != 30 {
		t.Fatalf("granted since the day before yesterday: %+v", st)
	}
	c.Since = b.now.Add(-time.Hour)
	if st := b.decide(withCost(c, 0)).States[0]; st.Carried != 0 {
		t.Fatalf("granted today: %+v", st)
	}
}

func TestPrepaid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := wallet(10)
	b.decide(withCost(c, 10))
	if st := b.decide(c).States[0]; st.Allowed || !st.Never || st.RetryAfter != 0 || st.Reset != 0 {
		t.Fatalf("empty: %+v", st)
	}
	c.Granted = 25 // a top-up
	if st := b.decide(withCost(c, 5)).States[0]; !st.Allowed || st.Remaining != 10 {
		t.Fatalf("after a top-up: %+v", st)
	}
	if err := b.server.Set("p:"+c.Key+":f", "7"); err != nil {
		t.Fatal(err)
	}
	if st := b.decide(withCost(c, -2)).States[0]; st.Consumed != 15 || st.Refunded != 2 || st.Forfeited != 7 || st.Remaining != 5 {
		t.Fatalf("25 granted − 15 + 2 − 7: %+v", st)
	}
	for _, key := range b.keys() {
		if b.server.TTL(key) != 0 {
			t.Errorf("%s expires", key)
		}
	}
}

// While the balance is positive a request passes, even one that takes it below
// zero; then nothing does.
func TestOverdraftOnce(t *testing.T) {
	t.Parallel()
	prepaid := wallet(10)
	prepaid.Algorithm, prepaid.Prepaid = limit.OverdraftQuota, true
	monthly := quota(10)
	monthly.Algorithm = limit.OverdraftQuota
	for _, c := range []limit.Counter{prepaid, monthly} {
		b := newBench(t)
		b.decide(withCost(c, 9))
		if d := b.decide(withCost(c, 50)); !d.Allowed || d.States[0].Consumed != 59 || d.States[0].Remaining != 0 {
			t.Errorf("1 of 10 left, cost 50: %+v", d)
		}
		for _, cost := range []int64{1, 50} {
			if d := b.decide(withCost(c, cost)); d.Allowed || d.States[0].Consumed != 59 || d.States[0].Never != c.Wallet() {
				t.Errorf("below zero, cost %d: %+v", cost, d)
			}
		}
		if d := b.decide(withCost(c, -50)); d.States[0].Remaining != 1 {
			t.Errorf("after a refund: %+v", d)
		}
		if !b.decide(c).Allowed || b.decide(c).Allowed {
			t.Error("not the one unit passes")
		}
	}
}

func TestNeverIsOnePeriodForEver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := renewing(2, period.Spec{Unit: period.NameNever})
	b.passes(2, c)
	b.wait(4000 * 24 * time.Hour)
	if st := b.decide(c).States[0]; st.Allowed || !st.Never || st.Consumed != 2 || st.Key != "{t:a}:t::m:quota:never:all" {
		t.Fatalf("%+v", st)
	}
	if b.server.TTL("p:"+c.Key+":never:all:c") != 0 {
		t.Error("expires")
	}
}

// Shadow counters deny nothing, and count what they would let pass, whatever
// the enforced ones say.
func TestShadowIsApart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	enforced, shadow := fixed(5), fixed(3)
	shadow.Key, shadow.Shadow = "{t:a}:t::m:fixed-shadow:60", true
	for i := range 8 {
		d := b.decide(shadow, enforced)
		if d.Allowed != (i < 5) || d.States[0].Allowed != (i < 3) || !d.States[0].Shadow {
			t.Fatalf("%d: %+v", i, d)
		}
	}
	lone := b.decide(shadow)
	if !lone.Allowed || lone.States[0].Allowed {
		t.Errorf("a shadow alone: %+v", lone)
	}
}

// A broken shadow counter spoils no decision.
func TestBrokenShadow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	shadow := fixed(3)
	shadow.Key, shadow.Shadow = "{t:a}:shadow", true
	_, _ = b.server.Lpush("p:{t:a}:shadow", "x")
	d := b.decide(shadow, fixed(5))
	if !d.Allowed || !d.States[0].Broken || d.States[1].Remaining != 4 {
		t.Fatalf("%+v", d)
	}
}

func TestForceChargesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	for _, a := range everyAlgorithm {
		b, c := newBench(t), longCounter(a, 10)
		c.Force = true
		d := b.decide(withCost(c, 15))
		if !d.Allowed || !d.States[0].Allowed || d.States[0].Remaining != 0 {
			t.Errorf("%s: %+v", a, d)
		}
		c.Force = false
		if b.decide(c).Allowed {
			t.Errorf("%s passes 15 of 10", a)
		}
		if d := b.decide(withCost(c, -6)); d.States[0].Remaining != 1 {
			t.Errorf("%s: 15 forced, 6 back: %+v", a, d)
		}
		// Also where others deny.
		c.Force = true
		empty := fixed(0)
		if d := b.decide(empty, c); d.Allowed || !d.States[1].Allowed || d.States[1].Remaining != 0 {
			t.Errorf("%s beside a denial: %+v", a, d)
		}
	}
}

// What was used at another time counts there: in its period, and in a window
// only if that still runs.
func TestUsedAtAnotherTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := b.now.Add(-70 * time.Second)
	forced := func(c limit.Counter, cost int64, at time.Time) limit.State {
		c.Force, c.Cost, c.At = true, cost, at
		return b.decide(c).States[0]
	}
	if st := forced(fixed(10), 5, before); st.Remaining != 10 {
		t.Errorf("fixedWindow, the window before: %+v", st)
	}
	if st := forced(sliding(10), 5, before); st.Remaining != 10 {
		t.Errorf("slidingWindow, two windows before: %+v", st)
	}
	if st := forced(sliding(10), 5, b.now.Add(-10*time.Second)); st.Remaining != 5 {
		t.Errorf("slidingWindow, the window before, all of it in sight: %+v", st)
	}
	june := time.Date(2026, 6, 30, 23, 0, 0, 0, time.UTC)
	if st := forced(quota(10), 5, june); st.Consumed != 5 || st.Key != "{t:a}:t::m:quota:month:202606" {
		t.Errorf("quota of June: %+v", st)
	}
	if st := b.decide(withCost(quota(10), 0)).States[0]; st.Consumed != 0 {
		t.Errorf("quota of July: %+v", st)
	}
}

func TestSettleChargesOnceASequence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	settle := func(id string, sequence uint64) {
		t.Helper()
		if _, err := b.Settle(t.Context(), limit.Once{ID: id, Seq: sequence}, []limit.Counter{withCost(fixed(10), 4), withCost(quota(10), 4)}); err != nil {
			t.Fatal(err)
		}
	}
	used := func() (int64, int64) {
		d := b.decide(withCost(fixed(1000), 0), withCost(quota(10), 0))
		return 1000 - d.States[0].Remaining, d.States[1].Consumed
	}
	for _, step := range []struct {
		id       string
		sequence uint64
		want     int64
	}{{"gw-1", 2, 4}, {"gw-1", 2, 4}, {"gw-1", 6, 8}, {"gw-1", 4, 8}, {"gw-2", 2, 12}, {"gw-1", 8, 16}} {
		settle(step.id, step.sequence)
		if f, q := used(); f != step.want || q != step.want {
			t.Fatalf("after %s %d: %d and %d used, want %d", step.id, step.sequence, f, q, step.want)
		}
	}
	if _, err := b.Settle(t.Context(), limit.Once{ID: "gw-1"}, []limit.Counter{fixed(1)}); err == nil {
		t.Error("sequence 0 was taken")
	}
}

// One broken counter stays as it is, and keeps no other of the call from being
// charged once; nor do quotas that are being restored.
func TestSettleLeavesOutWhatIsBroken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, _ = b.server.Lpush("p:{t:a}:bad", "x")
	bad := fixed(10)
	bad.Key = "{t:a}:bad"
	counters := []limit.Counter{withCost(quota(10), 4), bad, withCost(fixed(10), 4)}
	used := func() (int64, int64) {
		d := b.decide(withCost(fixed(10), 0), withCost(quota(10), 0))
		return 10 - d.States[0].Remaining, d.States[1].Consumed
	}
	b.server.Del("p:epoch")
	for range 2 {
		if _, err := b.Settle(t.Context(), limit.Once{ID: "gw", Seq: 9}, counters); !errors.Is(err, limit.ErrRestoring) {
			t.Fatalf("while quotas are being restored: %v", err)
		}
	}
	if left := b.decide(withCost(fixed(10), 0)).States[0].Remaining; left != 6 {
		t.Errorf("%d of the rate are left while quotas are being restored, want 6", left)
	}
	b.declareWhole()
	for range 3 {
		if _, err := b.Settle(t.Context(), limit.Once{ID: "gw", Seq: 9}, counters); err != nil {
			t.Fatal(err)
		}
		if f, q := used(); f != 4 || q != 4 {
			t.Errorf("%d and %d used, want 4 each", f, q)
		}
	}
	broken, err := b.Settle(t.Context(), limit.Once{ID: "gw", Seq: 12}, counters)
	if f, q := used(); err != nil || !slices.Equal(broken, []int{1}) || f != 8 || q != 8 {
		t.Errorf("broken %v, %v, %d and %d used, want 8 each", broken, err, f, q)
	}
	b.server.Del("p:{t:a}:bad") // mended: what was passed over stays so
	if broken, err := b.Settle(t.Context(), limit.Once{ID: "gw", Seq: 12}, counters); err != nil || len(broken) > 0 || b.server.Exists("p:{t:a}:bad") {
		t.Errorf("broken %v, %v, keys %v", broken, err, b.keys())
	}
}
