package share_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/services/gateway/internal/membership"
	"github.com/sluice-platform/sluice/services/gateway/internal/share"
)

// houses are the limiters of as many gateways, with one clock.
type houses struct {
	at  time.Time
	all []*share.Limiter
}

func newHouses(n int) *houses {
	h := &houses{at: time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC)}
	for rank := range n {
		h.all = append(h.all, share.New(share.Options{
			Position: func() membership.Position { return membership.Position{Live: n, Rank: rank} },
			Now:      func() time.Time { return h.at },
		}))
	}
	return h
}

// keyOf is a counter's key as states name it.
func keyOf(c *limit.Counter, at time.Time) string {
	if c.Renews() {
		return c.Key + ":" + c.Calendar.At(at).Name()
	}
	return c.Key
}

// decide is of shares that are known, or nothing is allowed.
func decide(l *share.Limiter, counters []limit.Counter) limit.Decision {
	d, known := l.Decide(counters)
	if !known {
		d.States = make([]limit.State, len(counters))
	}
	return d
}

// hammer asks each limiter until it denies and returns how many passed.
func (h *houses) hammer(c limit.Counter) (passed []int64) {
	for _, l := range h.all {
		n := int64(0)
		for decide(l, []limit.Counter{c}).Allowed {
			if n++; n > 1<<16 {
				panic("no end")
			}
		}
		passed = append(passed, n)
	}
	return passed
}

func sum(ns []int64) (s int64) {
	for _, n := range ns {
		s += n
	}
	return s
}

func (h *houses) observe(c limit.Counter, remaining int64, reset time.Duration) {
	for _, l := range h.all {
		l.Observe(&c, &limit.State{Key: keyOf(&c, h.at), Allowed: true, Limit: c.Limit, Remaining: remaining, Reset: reset})
	}
}

func every() []limit.Counter {
	const w = time.Minute
	return []limit.Counter{
		{Key: "f", Algorithm: limit.FixedWindow, Limit: 10, Window: w, Cost: 1},
		{Key: "s", Algorithm: limit.SlidingWindow, Limit: 10, Window: w, Cost: 1},
		{Key: "g", Algorithm: limit.GCRA, Limit: 10, Burst: 10, Window: w, Cost: 1},
		{Key: "b", Algorithm: limit.TokenBucket, Limit: 10, Burst: 10, Window: w, Cost: 1},
		{Key: "q", Algorithm: limit.RenewingQuota, Limit: 10, Calendar: period.Month(), Cost: 1},
		{Key: "o", Algorithm: limit.OverdraftQuota, Limit: 10, Calendar: period.Month(), Cost: 1},
		{Key: "p", Algorithm: limit.PrepaidQuota, Granted: 10, Cost: 1},
	}
}

func TestSharesSumUpToWhatWasLeft(t *testing.T) {
	t.Parallel()
	for _, c := range every() {
		for _, known := range []int64{-1, 0, 1, 7, 10} {
			for live := 1; live <= 4; live++ {
				h, want := newHouses(live), known
				if known >= 0 {
					h.observe(c, known, 30*time.Second)
				} else if want = 10; c.Wallet() {
					want = 0 // nobody knows what was left of it
				}
				passed := h.hammer(c)
				if sum(passed) != want || passed[0]-passed[live-1] > 1 || passed[0] < passed[live-1] {
					t.Errorf("%s, %d known, %d live: %v passed, want %d", c.Algorithm, known, live, passed, want)
				}
			}
		}
	}
}

// A store that comes and goes gives no second share within the same window,
// and one that says less is left makes the share smaller.
func TestShareIsKeptAcrossFlaps(t *testing.T) {
	t.Parallel()
	for _, c := range every() {
		h := newHouses(2)
		h.observe(c, 10, 30*time.Second)
		for range 3 {
			decide(h.all[0], []limit.Counter{c})
		}
		h.observe(c, 10, 30*time.Second) // back, and nothing settled yet
		if got := h.hammer(c); got[0] != 2 || got[1] != 5 {
			t.Errorf("%s: %v passed after a flap", c.Algorithm, got)
		}
		h = newHouses(2)
		h.observe(c, 10, 30*time.Second)
		for range 3 {
			decide(h.all[0], []limit.Counter{c})
		}
		h.observe(c, 2, 30*time.Second)
		if got := h.hammer(c); got[0] != 1 || got[1] != 1 {
			t.Errorf("%s: %v passed though 2 were left", c.Algorithm, got)
		}
	}
}

// A limit that is raised after a share was spent gives each gateway its share of
// the difference; one that is lowered takes it.
func TestShareFollowsTheLimit(t *testing.T) {
	t.Parallel()
	for _, c := range every() {
		if c.Algorithm.Bucket() || c.Wallet() || c.Overdraws() {
			continue
		}
		h := newHouses(2)
		h.observe(c, c.Limit, 30*time.Second)
		if got := sum(h.hammer(c)); got != c.Limit {
			t.Errorf("%s: %d passed of %d", c.Algorithm, got, c.Limit)
		}
		raised := c
		raised.Limit += 6
		if got := sum(h.hammer(raised)); got != 6 {
			t.Errorf("%s: %d passed after the limit was raised by 6", c.Algorithm, got)
		}
		if got := sum(h.hammer(c)); got != 0 {
			t.Errorf("%s: %d passed after the limit was lowered again", c.Algorithm, got)
		}
	}
}

func TestWindowsEndAndBucketsRefill(t *testing.T) {
	t.Parallel()
	for _, c := range every()[:4] {
		h := newHouses(2)
		h.observe(c, 4, 30*time.Second)
		first := sum(h.hammer(c))
		h.at = h.at.Add(time.Minute)
		second := sum(h.hammer(c))
		if first != 4 || second != 10 {
			t.Errorf("%s: %d, then %d passed", c.Algorithm, first, second)
		}
		h.at = h.at.Add(time.Minute)
		if h.observe(c, 3, 30*time.Second); sum(h.hammer(c)) != 3 && !c.Algorithm.Bucket() {
			t.Errorf("%s: what the store said between two shares is forgotten", c.Algorithm)
		}
	}
	quota := every()[4]
	h := newHouses(2)
	h.hammer(quota)
	h.at = h.at.AddDate(0, 1, 0)
	if n := sum(h.hammer(quota)); n != 10 {
		t.Errorf("%d of the next month passed", n)
	}
}

func TestDecisionsAreAllOrNothing(t *testing.T) {
	t.Parallel()
	l := newHouses(1).all[0]
	wide := limit.Counter{Key: "wide", Algorithm: limit.FixedWindow, Limit: 10, Window: time.Hour, Cost: 1}
	narrow := limit.Counter{Key: "narrow", Algorithm: limit.FixedWindow, Limit: 2, Window: time.Hour, Cost: 1}
	shadow := limit.Counter{Key: "shadow", Algorithm: limit.FixedWindow, Limit: 0, Window: time.Hour, Cost: 1, Shadow: true}
	for i := range 5 {
		d := decide(l, []limit.Counter{wide, narrow, shadow})
		if d.Allowed != (i < 2) || !d.States[0].Allowed || d.States[1].Allowed != (i < 2) || !d.States[2].Allowed {
			t.Fatalf("decision %d: %+v", i, d)
		}
		if st := d.States[1]; !d.Allowed && (st.Never || st.RetryAfter <= 0 || st.Limit != 2) {
			t.Errorf("%+v", st)
		}
	}
	if d := decide(l, []limit.Counter{wide}); d.States[0].Remaining != 7 {
		t.Errorf("%d of the wide one left, want 7", d.States[0].Remaining)
	}
	// One key twice is charged the sum.
	if d := decide(l, []limit.Counter{{Key: "wide", Algorithm: limit.FixedWindow, Limit: 10, Window: time.Hour, Cost: 4}, {Key: "wide", Algorithm: limit.FixedWindow, Limit: 10, Window: time.Hour, Cost: 4}}); d.Allowed {
		t.Error("8 of 7 passed")
	}
}

func TestZeroUnlimitedPeekRefund(t *testing.T) {
	t.Parallel()
	l := newHouses(1).all[0]
	one := func(c limit.Counter) limit.State {
		c.Key, c.Algorithm, c.Window = fmt.Sprint(c.Limit), limit.FixedWindow, time.Hour
		return decide(l, []limit.Counter{c}).States[0]
	}
	if st := one(limit.Counter{Limit: 0, Cost: 1}); st.Allowed || !st.Never {
		t.Errorf("0: %+v", st)
	}
	if st := one(limit.Counter{Unlimited: true, Cost: 1 << 40}); !st.Allowed || !st.Unlimited {
		t.Errorf("unlimited: %+v", st)
	}
	one(limit.Counter{Limit: 3, Cost: 3})
	if st := one(limit.Counter{Limit: 3, Cost: 0}); !st.Allowed || st.Remaining != 0 {
		t.Errorf("peek: %+v", st)
	}
	if st := one(limit.Counter{Limit: 3, Cost: 4}); st.Allowed || !st.Never {
		t.Errorf("above: %+v", st)
	}
	one(limit.Counter{Limit: 3, Cost: -2})
	if st := one(limit.Counter{Limit: 3, Cost: 2}); !st.Allowed {
		t.Errorf("after a refund: %+v", st)
	}
}

// However live gateways come and go and however fast it is asked, a bucket lets
// no more pass in any run than its burst and its refill.
func TestBucketsNeverPassTheirRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := limit.Counter{Key: "g", Algorithm: limit.GCRA, Limit: rapid.Int64Range(1, 50).Draw(t, "limit"),
			Burst: rapid.Int64Range(1, 50).Draw(t, "burst"), Window: time.Duration(rapid.IntRange(1, 60).Draw(t, "window")) * time.Second}
		h := newHouses(rapid.IntRange(1, 4).Draw(t, "live"))
		began, passed := h.at, int64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			h.at = h.at.Add(time.Duration(rapid.IntRange(0, 3_000_000).Draw(t, "µs")) * time.Microsecond)
			c.Cost = rapid.Int64Range(1, 5).Draw(t, "cost")
			if decide(h.all[rapid.IntRange(0, len(h.all)-1).Draw(t, "who")], []limit.Counter{c}).Allowed {
				passed += c.Cost
			}
		}
		most := c.Burst + int64(h.at.Sub(began))*c.Limit/int64(c.Window)
		if passed > most {
			t.Fatalf("%d passed, at most %d could", passed, most)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	l := share.New(share.Options{Counters: 640})
	c := limit.Counter{Algorithm: limit.FixedWindow, Limit: 1, Window: time.Hour, Cost: 1}
	for i := range 10_000 {
		c.Key = fmt.Sprint(i)
		decide(l, []limit.Counter{c})
	}
	if n := l.Len(); n > 640 {
		t.Errorf("%d counters are held", n)
	}
}

// A process that has not reached the store gives out nothing, since the process
// before it may have; nor does any of a wallet of which the store said nothing.
func TestNothingIsGivenOutOfWhatIsUnknown(t *testing.T) {
	t.Parallel()
	for _, c := range every() {
		at := time.Date(2026, 7, 31, 23, 59, 30, 0, time.UTC)
		reached := false
		l := share.New(share.Options{Now: func() time.Time { return at }, Reached: func() bool { return reached }})
		for range 2 {
			if d, known := l.Decide([]limit.Counter{c}); known {
				t.Errorf("%s: %+v before the store was reached", c.Algorithm, d.States)
			}
			at = at.Add(time.Minute) // into the next month, and the next window
		}
		reached = true
		d, known := l.Decide([]limit.Counter{c})
		if want := !c.Wallet(); known != want || known && !d.Allowed {
			t.Errorf("%s: %+v, known %t once the store was reached", c.Algorithm, d, known)
		}
		l.Observe(&c, &limit.State{Key: keyOf(&c, at), Allowed: true, Limit: c.Limit, Remaining: 4, Reset: time.Minute})
		if d, known := l.Decide([]limit.Counter{c}); !known || !d.Allowed {
			t.Errorf("%s: %+v, known %t of what the store said", c.Algorithm, d, known)
		}
	}
}

// A share that is spent is worth asking again soon, since the store may be back;
// not where the store itself had nothing left.
func TestSpentShareAsksToComeBackSoon(t *testing.T) {
	t.Parallel()
	quota := every()[4]
	for remaining, long := range map[int64]bool{8: false, 0: true} {
		h := newHouses(2)
		h.observe(quota, remaining, 0)
		h.hammer(quota)
		st := decide(h.all[0], []limit.Counter{quota}).States[0]
		if (st.RetryAfter > time.Minute) != long || st.RetryAfter <= 0 {
			t.Errorf("%d were left: again in %s", remaining, st.RetryAfter)
		}
	}
}

// What is given back can be had again, once; and nothing of it in a later window.
func TestGivenBackSharesAreWhole(t *testing.T) {
	t.Parallel()
	for _, c := range every() {
		h := newHouses(1)
		h.observe(c, 10, time.Minute)
		l := h.all[0]
		c.Cost = 4
		d := decide(l, []limit.Counter{c})
		l.GiveBack([]limit.Counter{c}, &d)
		c.Cost = 1
		if n := h.hammer(c)[0]; n != 10 {
			t.Errorf("%s: %d passed of 10", c.Algorithm, n)
		}
		if c.Algorithm != limit.FixedWindow {
			continue
		}
		d = decide(l, []limit.Counter{{Key: "x", Algorithm: limit.FixedWindow, Limit: 10, Window: time.Minute, Cost: 4}})
		h.at = h.at.Add(time.Minute)
		c.Key = "x"
		decide(l, []limit.Counter{c})
		l.GiveBack([]limit.Counter{{Key: "x", Algorithm: limit.FixedWindow, Limit: 10, Window: time.Minute, Cost: 4}}, &d)
		if n := h.hammer(c)[0]; n != 9 {
			t.Errorf("%d passed of the 9 of the next window", n)
		}
	}
}
