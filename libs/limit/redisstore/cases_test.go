package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

func per(c limit.Counter, window time.Duration) limit.Counter {
	c.Window, c.Key = window, fmt.Sprintf("%s:%s", c.Key, window)
	return c
}

func TestCaseFixedWindow10AnHour50SentRaisedTo20TheNext10Pass(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if n := b.passes(50, per(fixed(10), time.Hour)); n != 10 {
		t.Fatalf("%d of 50 passed a limit of 10", n)
	}
	if n := b.passes(50, per(fixed(20), time.Hour)); n != 10 {
		t.Fatalf("%d of 50 passed after 10 of 20", n)
	}
}

func TestCaseGroup10AMinuteRoute3AMinute5ToTheRouteLeave7InTheGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	group, route := fixed(10), fixed(3)
	route.Key += ":route"
	for range 5 {
		b.decide(group, route)
	}
	if left := remaining(t, b.Store, []limit.Counter{group, route}); left[0] != 7 || left[1] != 0 {
		t.Fatalf("%v left", left)
	}
}

func TestCaseUsed95Of100Cost50IsDeniedThenCost5Passes(t *testing.T) {
	t.Parallel()
	for _, a := range everyAlgorithm {
		b, c := newBench(t), longCounter(a, 100)
		b.decide(withCost(c, 95))
		if d := b.decide(withCost(c, 50)); d.Allowed != c.Overdraws() {
			t.Errorf("%s: cost 50 at 95: %+v", a, d)
		} else if c.Overdraws() {
			continue // the one request that goes below zero
		}
		if d := b.decide(withCost(c, 5)); !d.Allowed || d.States[0].Remaining != 0 {
			t.Errorf("%s: cost 5 at 95: %+v", a, d)
		}
	}
}

func TestCase5RPSUnder10RPSForAMinute5PassEverySecond(t *testing.T) {
	t.Parallel()
	b, c := newBench(t), per(fixed(5), time.Second)
	for second := range 60 {
		passed := 0
		for range 10 {
			passed += b.passes(1, c)
			b.wait(100 * time.Millisecond)
		}
		if passed != 5 {
			t.Fatalf("%d passed in second %d", passed, second)
		}
	}
}

func TestCase10ASecondAnd1000ADayOnOneMetricBothHold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	second, day := per(fixed(10), time.Second), per(fixed(1000), 24*time.Hour)
	passed := 0
	for range 150 {
		in := 0
		for range 12 {
			if b.decide(second, day).Allowed {
				in++
			}
		}
		if in > 10 {
			t.Fatalf("%d passed in a second", in)
		}
		passed += in
		b.wait(time.Second)
	}
	if passed != 1000 {
		t.Fatalf("%d passed in a day", passed)
	}
}

func TestCase10Per30SecondsWhileHitsGoOnOneTokenBackEvery3Seconds(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{gcra(10, 10), bucket(10, 10)} {
		b := newBench(t)
		c.Window = 30 * time.Second
		b.passes(10, c)
		for i := range 40 { // a hit each 500 ms, denied all but once in 3 s
			b.wait(500 * time.Millisecond)
			if passed := b.decide(c).Allowed; passed != (i%6 == 5) {
				t.Fatalf("%s: hit %d passed %t", c.Algorithm, i, passed)
			}
		}
	}
}

func TestCaseGCRA30AMinuteBurst10UnderOverloadFor10MinutesAtMost310Pass(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{gcra(30, 10), bucket(30, 10)} {
		b := newBench(t)
		passed := 0
		for range 10 * 60 * 4 {
			passed += b.passes(1, c)
			b.wait(250 * time.Millisecond)
		}
		if passed > 310 || passed < 308 {
			t.Errorf("%s: %d passed", c.Algorithm, passed)
		}
	}
}

func TestCaseSlidingWindowWithLimit1TheFirstPasses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.wait(59 * time.Second)
	if !b.decide(sliding(1)).Allowed || b.decide(sliding(1)).Allowed {
		t.Fatal("not the first alone passes")
	}
	b.wait(60 * time.Second) // the last second of the next window: 1/60 of it is in sight
	d := b.decide(sliding(1))
	if d.Allowed || d.States[0].RetryAfter != time.Second {
		t.Fatalf("%+v", d)
	}
	b.wait(time.Second)
	if !b.decide(sliding(1)).Allowed {
		t.Fatal("denied after the last one is out of sight")
	}
}

func TestCaseCostAboveBurstIsDeniedWithoutRetryAfterRemainingUnchanged(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{gcra(100, 10), bucket(100, 10), fixed(10), sliding(10)} {
		b := newBench(t)
		b.decide(withCost(c, 3))
		d := b.decide(withCost(c, 11))
		if st := d.States[0]; d.Allowed || !st.Never || st.RetryAfter != 0 || st.Remaining != 7 {
			t.Errorf("%s: %+v", c.Algorithm, st)
		}
	}
}

// 1 per 3 s and 100 per 7 min: each unit passes at the microsecond it is due,
// over and over. (A million steps in the soak.)
func TestCase1Per3SecondsAnd100Per7MinutesDoNotDrift(t *testing.T) {
	t.Parallel()
	for _, c := range slowCounters() {
		b := newBench(t)
		start := b.now
		for i := range 500 {
			b.wait(start.Add(due(&c, i) - time.Microsecond).Sub(b.now))
			if i > 0 && b.decide(c).Allowed {
				t.Fatalf("%s %d per %s: unit %d passed early", c.Algorithm, c.Limit, c.Window, i)
			}
			b.wait(time.Microsecond)
			if !b.decide(c).Allowed {
				t.Fatalf("%s %d per %s: unit %d is late", c.Algorithm, c.Limit, c.Window, i)
			}
		}
	}
}

func slowCounters() []limit.Counter {
	return []limit.Counter{
		per(gcra(1, 1), 3*time.Second), per(gcra(100, 1), 7*time.Minute),
		per(bucket(1, 1), 3*time.Second), per(bucket(100, 1), 7*time.Minute),
	}
}

// due is when unit i is: at i·window ÷ limit, rounded up to a microsecond.
func due(c *limit.Counter, i int) time.Duration {
	return time.Duration((int64(i)*c.Window.Microseconds()+c.Limit-1)/c.Limit) * time.Microsecond
}

func TestCaseTwoGateways10SecondsApartBurst4FourPass(t *testing.T) {
	t.Parallel()
	for _, a := range everyAlgorithm {
		b, c := newBench(t), longCounter(a, 4)
		passed := 0
		for _, off := range []time.Duration{-10 * time.Second, 10 * time.Second} {
			s := newStore(t, newClient(t, b.server.Addr()), Options{KeyPrefix: "p:", Now: func() time.Time { return noon.Add(off) }})
			for range 6 {
				d, err := s.Decide(t.Context(), []limit.Counter{c})
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					passed++
				}
			}
		}
		if passed != 4 {
			t.Errorf("%s: %d passed", a, passed)
		}
	}
}

func TestCaseRedisClock5SecondsBackNothingIsRefilledTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{fixed(4), sliding(4), gcra(4, 4), bucket(4, 4), quota(4)} {
		b := newBench(t)
		b.wait(15 * time.Second)
		b.passes(4, c)
		passed := 0
		for range 4 { // to and fro over the same 5 s
			b.wait(5 * time.Second)
			passed += b.passes(10, c)
			b.now = b.now.Add(-5 * time.Second)
			b.server.SetTime(b.now)
			passed += b.passes(10, c)
		}
		if passed != 0 {
			t.Errorf("%s: %d passed", c.Algorithm, passed)
		}
	}
}

func TestCaseSteadyTrafficLongerThanTheWindowTheWindowStillEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{fixed(5), sliding(5)} {
		b := newBench(t)
		passed := 0
		for range 300 {
			passed += b.passes(1, c)
			b.wait(time.Second)
		}
		if passed < 20 || passed > 25 {
			t.Errorf("%s: %d passed in five windows of 5", c.Algorithm, passed)
		}
	}
}

func TestCase90Of100UsedLimit50DeniesLimit200Leaves110(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{fixed(100), sliding(100), quota(100)} {
		b := newBench(t)
		b.decide(withCost(c, 90))
		c.Limit = 50
		if d := b.decide(c); d.Allowed || d.States[0].Remaining != 0 || d.States[0].Never {
			t.Errorf("%s at 50: %+v", c.Algorithm, d)
		}
		c.Limit = 200
		if left := remaining(t, b.Store, []limit.Counter{c})[0]; left != 110 {
			t.Errorf("%s at 200: %d left", c.Algorithm, left)
		}
	}
}

// tokenBucket keeps its tokens, up to the new burst; gcra its arrival time.
func TestCaseNumbersOfABucketChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.decide(withCost(bucket(60, 100), 40))
	for _, step := range []struct{ limit, burst, left int64 }{{60, 200, 60}, {7, 200, 60}, {1_000_000, 70, 60}, {60, 50, 50}} {
		if left := remaining(t, b.Store, []limit.Counter{bucket(step.limit, step.burst)})[0]; left != step.left {
			t.Errorf("tokenBucket %+v: %d left", step, left)
		}
	}
	b.decide(withCost(gcra(60, 100), 40)) // 40 s ahead
	for _, step := range []struct{ limit, burst, left int64 }{{60, 200, 160}, {30, 200, 180}, {60, 50, 10}} {
		if left := remaining(t, b.Store, []limit.Counter{gcra(step.limit, step.burst)})[0]; left != step.left {
			t.Errorf("gcra %+v: %d left", step, left)
		}
	}
}

func TestCaseGCRAChangedToFixedWindowStartsAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.passes(10, gcra(10, 10))
	if n := b.passes(20, fixed(10)); n != 10 {
		t.Fatalf("%d passed", n)
	}
}

func TestCaseRemaining0Refund1Remaining1(t *testing.T) {
	t.Parallel()
	for _, a := range everyAlgorithm {
		b, c := newBench(t), longCounter(a, 3)
		b.passes(3, c)
		d := b.decide(withCost(c, -1))
		if !d.Allowed || d.States[0].Remaining != 1 {
			t.Errorf("%s: refund: %+v", a, d)
		}
		if n := b.passes(5, c); n != 1 {
			t.Errorf("%s: %d passed after a refund of 1", a, n)
		}
		// Never below nothing used.
		if d := b.decide(withCost(c, -100)); d.States[0].Remaining != 3 {
			t.Errorf("%s: refund of 100: %+v", a, d)
		}
		if n := b.passes(5, c); n != 3 {
			t.Errorf("%s: %d passed after all was given back", a, n)
		}
	}
}

func TestCaseTheMinuteRulePassesTheHourRuleDenies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	minute, hour := fixed(10), per(fixed(3), time.Hour)
	for range 3 {
		b.decide(minute, hour)
	}
	d := b.decide(minute, hour)
	if d.Allowed || !d.States[0].Allowed || d.States[1].Allowed || d.States[1].RetryAfter != time.Hour {
		t.Fatalf("%+v", d)
	}
}

func TestCaseTenantWithAColonInItsNameIsApart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two := fixed(3), fixed(3)
	one.Key, two.Key = "{t:a%3Au}:u:b:m:fixed:60", "{t:a}:u:u%3Ab:m:fixed:60"
	b.passes(3, one)
	if n := b.passes(5, two); n != 3 {
		t.Fatalf("%d passed the other's counter", n)
	}
}

func renewing(n int64, spec period.Spec) limit.Counter {
	return limit.Counter{Key: "{t:a}:t::m:quota", Algorithm: limit.RenewingQuota, Limit: n, Calendar: mustCalendar(spec), Cost: 1}
}

// at moves the bench to a time, forward only.
func (b *bench) at(when string) {
	b.t.Helper()
	to, err := time.Parse(time.RFC3339, when)
	if err != nil {
		b.t.Fatal(err)
	}
	if to.Before(b.now) {
		b.now = to
		b.server.SetTime(to)
		return
	}
	b.wait(to.Sub(b.now))
}

func TestCaseAnchor31(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := renewing(1, period.Spec{Unit: period.NameMonth, AnchorDay: 31})
	for _, tc := range []struct {
		at    string
		reset time.Duration
	}{
		{"2026-01-31T00:00:00Z", 28 * 24 * time.Hour}, // to 28 Feb
		{"2026-02-28T00:00:00Z", 31 * 24 * time.Hour}, // to 31 Mar
		{"2026-03-31T00:00:00Z", 30 * 24 * time.Hour}, // to 30 Apr
	} {
		b.at(tc.at)
		if d := b.decide(c); !d.Allowed || d.States[0].Reset != tc.reset {
			t.Errorf("%s: %+v", tc.at, d)
		}
		b.wait(tc.reset - time.Second)
		if d := b.decide(c); d.Allowed || d.States[0].RetryAfter != time.Second {
			t.Errorf("a second before the end of %s: %+v", tc.at, d)
		}
	}
}

func TestCaseDailyQuotaInParisOnBothClockChangeDays(t *testing.T) {
	t.Parallel()
	for at, hours := range map[string]int{"2026-03-28T23:00:00Z": 23, "2026-10-24T22:00:00Z": 25} {
		b := newBench(t)
		b.at(at)
		c := renewing(1, period.Spec{Unit: period.NameDay, Zone: "Europe/Paris"})
		if d := b.decide(c); !d.Allowed || d.States[0].Reset != time.Duration(hours)*time.Hour {
			t.Errorf("%s: %+v, want %d h", at, d, hours)
		}
		b.wait(time.Duration(hours)*time.Hour - time.Second)
		if b.decide(c).Allowed {
			t.Errorf("%s: twice in a day", at)
		}
		b.wait(time.Second)
		if !b.decide(c).Allowed {
			t.Errorf("%s: not renewed", at)
		}
	}
}

func TestCaseWeekStartsOnTheRulesDay(t *testing.T) {
	t.Parallel()
	b := newBench(t) // Thursday noon
	c := renewing(1, period.Spec{Unit: period.NameWeek, WeekStart: "sunday"})
	if d := b.decide(c); d.States[0].Reset != 60*time.Hour {
		t.Fatalf("%+v, want 60 h to Sunday", d)
	}
}

func TestCaseTenantsDayIsNotUTCsNoDoubleAllowance(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.at("2026-07-23T21:00:00Z") // midnight in Istanbul
	c := renewing(5, period.Spec{Unit: period.NameDay, Zone: "Europe/Istanbul"})
	passed := 0
	for range 24 {
		passed += b.passes(2, c)
		b.wait(59 * time.Minute)
	}
	if passed != 5 {
		t.Fatalf("%d passed in one of the tenant's days, over UTC's midnight", passed)
	}
}

// A zone or anchor changed in mid-period holds from the next one: nothing is
// lost, nothing granted twice, and a period cut short grants its share.
func TestCaseCalendarChangedMidPeriod(t *testing.T) {
	t.Parallel()
	b := newBench(t) // 23 July
	c := renewing(310, period.Spec{Unit: period.NameMonth})
	b.decide(withCost(c, 300))
	next, err := c.Calendar.Then(mustCalendar(period.Spec{Unit: period.NameMonth, AnchorDay: 11}), b.now)
	if err != nil {
		t.Fatal(err)
	}
	c.Calendar = next
	if d := b.decide(withCost(c, 0)); d.States[0].Consumed != 300 || d.States[0].Remaining != 10 || d.States[0].Key != "{t:a}:t::m:quota:month:202607" {
		t.Fatalf("July after the change: %+v", d.States[0])
	}
	b.at("2026-08-01T00:00:00Z")
	d := b.decide(c)
	if st := d.States[0]; st.Limit != 100 || st.Consumed != 1 || st.Reset != 10*24*time.Hour {
		t.Fatalf("1 to 11 August, 10 of 31 days: %+v", st)
	}
	b.at("2026-08-11T00:00:00Z")
	if st := b.decide(c).States[0]; st.Limit != 310 || st.Consumed != 1 {
		t.Fatalf("from 11 August: %+v", st)
	}
}
