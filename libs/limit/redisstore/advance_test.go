package redisstore

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

const stepKey = "{t:a}:reservation:r1"

// advance goes from one number to another with counters, and returns what became
// of it.
func (b *bench) advance(from, to int64, counters ...limit.Counter) (bool, error) {
	b.t.Helper()
	d, err := b.Advance(b.t.Context(), Advance{Steps: []Step{{stepKey, from, to}}, Counters: counters, At: b.now})
	return d.Allowed, err
}

func (b *bench) stands(key string) int64 {
	b.t.Helper()
	text, err := b.server.Get("p:" + key)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

func TestStepsGoOnOnceWithTheirCharge(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	give := func(n int64) limit.Counter {
		c := withCost(quota(10), -n)
		c.At = noon
		return c
	}
	force := func(n int64) limit.Counter {
		c := withCost(quota(10), n)
		c.Force, c.At = true, noon
		return c
	}
	for i, step := range []struct {
		from, to int64
		c        limit.Counter
		want     error
		denied   bool
		stands   int64
		used     int64
	}{
		{from: 1, to: 2, c: give(4), want: ErrAdvanced},
		{from: 0, to: 1, c: withCost(quota(10), 11), denied: true}, // and the number stays
		{from: 0, to: 1, c: withCost(quota(10), 8), stands: 1, used: 8},
		{from: 0, to: 1, c: withCost(quota(10), 1), want: ErrAdvanced, stands: 1, used: 8},
		{from: 1, to: 1, c: force(1), stands: 1, used: 9}, // looked at only
		{from: 1, to: limit.MaxInteger, c: force(3), stands: limit.MaxInteger, used: 12},
		{from: 1, to: 2, c: give(9), want: ErrAdvanced, stands: limit.MaxInteger, used: 12},
		{from: limit.MaxInteger, to: 2, c: give(9), stands: 2, used: 3}, // numbers may go down
	} {
		passed, err := b.advance(step.from, step.to, step.c)
		if !errors.Is(err, step.want) || passed != (err == nil && !step.denied) {
			t.Fatalf("%d: from %d to %d: %t, %v", i, step.from, step.to, passed, err)
		}
		st := b.decide(withCost(quota(10), 0)).States[0]
		if n := b.stands(stepKey); n != step.stands || st.Consumed-st.Refunded != step.used {
			t.Fatalf("%d: number %d, used %d, want %d and %d", i, n, st.Consumed-st.Refunded, step.stands, step.used)
		}
	}
	if ttl := b.server.TTL("p:" + stepKey); ttl != 30*24*time.Hour {
		t.Errorf("the number expires in %s", ttl)
	}
}

// All of a group or nothing: a second step that does not fit, one broken
// counter, one that denies.
func TestStepsAreAllOrNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, _ = b.server.Lpush("p:{t:a}:bad", "x")
	_, _ = b.server.Lpush("p:{t:a}:badstep", "x")
	bad := fixed(1)
	bad.Key = "{t:a}:bad"
	a := Advance{Steps: []Step{{stepKey, 0, 1}}, Counters: []limit.Counter{withCost(fixed(10), 4), gcra(30, 10)}, At: b.now}
	with := func(steps []Step, counters ...limit.Counter) Advance {
		v := a
		v.Steps, v.Counters = append(steps, v.Steps...), append(counters, v.Counters...)
		return v
	}
	for name, c := range map[string]struct {
		a    Advance
		want error
	}{
		"another step": {with([]Step{{"{t:a}:other", 5, 6}}), ErrAdvanced},
		"broken":       {with(nil, bad), limit.ErrCounterBroken},
		"broken step":  {with([]Step{{"{t:a}:badstep", 0, 1}}), limit.ErrCounterBroken},
		"denied":       {with(nil, withCost(quota(3), 4)), nil},
		"overdue":      {Advance{Steps: a.Steps, Counters: a.Counters, At: b.now, Until: b.now.Add(-time.Microsecond)}, ErrOverdue},
		"other period": {Advance{Steps: a.Steps, Counters: []limit.Counter{quota(3)}, At: b.now.Add(240 * time.Hour)}, ErrOtherPeriod},
	} {
		d, err := b.Advance(t.Context(), c.a)
		if !errors.Is(err, c.want) || d.Allowed {
			t.Errorf("%s: %t, %v", name, d.Allowed, err)
		}
	}
	if d := b.decide(withCost(fixed(10), 0), withCost(gcra(30, 10), 0)); d.States[0].Remaining != 10 || d.States[1].Remaining != 10 || b.stands(stepKey) != 0 {
		t.Fatalf("something was charged: %+v", d.States)
	}
	// One key twice in a group, a step among others on one key, and the last instant.
	a.Steps, a.Counters = []Step{{stepKey, 0, 1}, {"{t:a}:other", 0, 7}}, append(a.Counters, withCost(fixed(10), 2))
	a.Until = b.now
	if d, err := b.Advance(t.Context(), a); err != nil || !d.Allowed || d.States[2].Remaining != 4 || b.stands("{t:a}:other") != 7 {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err := b.Advance(t.Context(), Advance{Steps: []Step{{stepKey, 1, 2}}, At: b.now}); err != nil || !d.Allowed || b.stands(stepKey) != 2 {
		t.Fatalf("without counters: %+v, %v", d, err)
	}
}

// A number that was lost must not be taken for one that never was.
func TestStepsWaitForARestore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if passed, err := b.advance(0, 1, fixed(10)); !passed || err != nil {
		t.Fatal(passed, err)
	}
	b.server.FlushAll()
	if _, err := b.advance(0, 1, fixed(10)); !errors.Is(err, limit.ErrRestoring) {
		t.Fatalf("error %v", err)
	}
	b.declareWhole()
	if passed, err := b.advance(0, 1, fixed(10)); !passed || err != nil {
		t.Fatal(passed, err)
	}
}

// The numbers of the steps that a store took come back with the totals, the
// furthest each; not those of so long ago that the key may be another's by now.
func TestStepsAreReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	reported := map[string]string{}
	b.sync(t.Context(), reported)
	if passed, err := b.advance(0, 1, withCost(quota(10), 4)); !passed || err != nil {
		t.Fatal(passed, err)
	}
	if passed, err := b.advance(1, 7); !passed || err != nil {
		t.Fatal(passed, err)
	}
	lose := func() {
		t.Helper()
		b.server.FlushAll()
		b.declareWhole()
		b.sync(t.Context(), reported)
	}
	lose()
	if n := b.stands(stepKey); n != 7 {
		t.Fatalf("number %d came back, want 7", n)
	}
	if ttl := b.server.TTL("p:" + stepKey); ttl <= 29*24*time.Hour || ttl > 30*24*time.Hour {
		t.Errorf("it expires in %s", ttl)
	}
	if st := b.decide(withCost(quota(10), 0)).States[0]; st.Consumed != 4 {
		t.Errorf("%+v", st)
	}
	b.wait(stepRemembered*time.Second + time.Second)
	lose()
	if n := b.stands(stepKey); n != 0 {
		t.Fatalf("number %d came back of long ago", n)
	}
	// Used anew it begins anew.
	if passed, err := b.advance(0, 2); !passed || err != nil {
		t.Fatal(passed, err)
	}
	lose()
	if n := b.stands(stepKey); n != 2 {
		t.Fatalf("number %d came back, want 2", n)
	}
}

func TestWrongAdvancesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for want, a := range map[string]Advance{
		"no steps":        {At: noon},
		"no time":         {Steps: []Step{{stepKey, 0, 1}}},
		"not in 0 to":     {Steps: []Step{{stepKey, 0, limit.MaxInteger + 1}}, At: noon},
		"from -1 to 1":    {Steps: []Step{{stepKey, -1, 1}}, At: noon},
		"invalid counter": {Steps: []Step{{stepKey, 0, 1}}, At: noon, Counters: []limit.Counter{{Key: "{t:a}:x", Algorithm: limit.FixedWindow, Limit: 1}}},
	} {
		if _, err := b.Advance(t.Context(), a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
