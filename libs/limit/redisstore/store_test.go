package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
)

var noon = time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)

// bench is a store on an in-process server whose clock the test moves.
type bench struct {
	*Store
	t      *testing.T
	server *miniredis.Miniredis
	now    time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, server: miniredis.RunT(t), now: noon}
	b.server.SetTime(noon)
	b.Store = newStore(t, newClient(t, b.server.Addr()), Options{KeyPrefix: "p:", Now: func() time.Time { return b.now }})
	return b
}

// wait moves the server's clock and what expires by it.
func (b *bench) wait(d time.Duration) {
	b.now = b.now.Add(d)
	b.server.SetTime(b.now)
	if d > 0 {
		b.server.FastForward(d)
	}
}

// keys are those of counters, not the marker and the receipts of calls.
func (b *bench) keys() []string {
	return slices.DeleteFunc(b.server.Keys(), func(key string) bool { return key == "p:epoch" || strings.Contains(key, "once:") })
}

func (b *bench) decide(counters ...limit.Counter) limit.Decision {
	b.t.Helper()
	d, err := b.Decide(b.t.Context(), counters)
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

// passes sends n and returns how many pass.
func (b *bench) passes(n int, c limit.Counter) (passed int) {
	b.t.Helper()
	for range n {
		if b.decide(c).Allowed {
			passed++
		}
	}
	return passed
}

func fixed(n int64) limit.Counter {
	return limit.Counter{Key: "{t:a}:t::m:fixed:60", Algorithm: limit.FixedWindow, Limit: n, Window: time.Minute, Cost: 1}
}

func gcra(n, burst int64) limit.Counter {
	return limit.Counter{Key: "{t:a}:t::m:gcra:60", Algorithm: limit.GCRA, Limit: n, Burst: burst, Window: time.Minute, Cost: 1}
}

func sliding(n int64) limit.Counter {
	return limit.Counter{Key: "{t:a}:t::m:sliding:60", Algorithm: limit.SlidingWindow, Limit: n, Window: time.Minute, Cost: 1}
}

func bucket(n, burst int64) limit.Counter {
	return limit.Counter{Key: "{t:a}:t::m:bucket:60", Algorithm: limit.TokenBucket, Limit: n, Burst: burst, Window: time.Minute, Cost: 1}
}

func quota(n int64) limit.Counter {
	return limit.Counter{Key: "{t:a}:t::m:quota", Algorithm: limit.RenewingQuota, Limit: n, Cost: 1}
}

func withCost(c limit.Counter, cost int64) limit.Counter {
	c.Cost = cost
	return c
}

func TestRestedCounterLetsCapacityPass(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{fixed(10), gcra(30, 10), gcra(7, 10), quota(10)} {
		b := newBench(t)
		if n := b.passes(40, c); n != 10 {
			t.Errorf("%s: %d of 40 passed at one instant, want 10", c.Algorithm, n)
		}
	}
}

func TestGCRARefillsOneEveryInterval(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := gcra(20, 10) // one each 3 s
	b.passes(10, c)
	for range 5 {
		d := b.decide(c)
		if d.Allowed || d.States[0].RetryAfter != 3*time.Second || d.States[0].Reset != 3*time.Second {
			t.Fatalf("dry: %+v", d)
		}
		b.wait(3*time.Second - time.Microsecond)
		if b.decide(c).Allowed {
			t.Fatal("passed a microsecond early")
		}
		b.wait(time.Microsecond)
		if n := b.passes(3, c); n != 1 {
			t.Fatalf("%d passed after 3 s, want 1", n)
		}
	}
}

// 7 a minute is a unit each 8,571,428 4/7 µs; seven of them are a minute to the
// microsecond, for ever.
func TestGCRADoesNotDrift(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := gcra(7, 1)
	for range 50 {
		for i := range 7 {
			d := b.decide(c)
			if !d.Allowed {
				t.Fatalf("unit %d denied: %+v", i, d)
			}
			b.wait(d.States[0].Reset)
		}
	}
	// Each wait was rounded up to a microsecond, at most 7 a round.
	if late := b.now.Sub(noon) - 50*time.Minute; late < 0 || late > 350*time.Microsecond {
		t.Fatalf("350 units took 50 minutes and %s", late)
	}
}

// Raising or lowering the limit keeps what was used.
func TestLimitChangesKeepUse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.passes(50, fixed(10))
	if n := b.passes(50, fixed(20)); n != 10 {
		t.Errorf("10 used, limit 10 → 20: %d passed, want 10", n)
	}
	if d := b.decide(withCost(fixed(100), 70)); d.States[0].Remaining != 10 {
		t.Errorf("90 of 100 used: %+v", d)
	}
	if d := b.decide(fixed(50)); d.Allowed || d.States[0].Remaining != 0 || d.States[0].Never {
		t.Errorf("90 used, limit 50: %+v", d)
	}
	if d := b.decide(withCost(fixed(200), 0)); d.States[0].Remaining != 110 {
		t.Errorf("90 used, limit 200: %+v", d)
	}
}

func TestCosts(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{fixed(100), gcra(100, 100), quota(100)} {
		b := newBench(t)
		b.decide(withCost(c, 95))
		if d := b.decide(withCost(c, 50)); d.Allowed || d.States[0].Never || d.States[0].RetryAfter <= 0 || d.States[0].Remaining != 5 {
			t.Errorf("%s: 50 at 95: %+v", c.Algorithm, d)
		}
		if d := b.decide(withCost(c, 101)); d.Allowed || !d.States[0].Never || d.States[0].RetryAfter != 0 || d.States[0].Remaining != 5 {
			t.Errorf("%s: 101 of 100: %+v", c.Algorithm, d)
		}
		if d := b.decide(withCost(c, 5)); !d.Allowed || d.States[0].Remaining != 0 {
			t.Errorf("%s: 5 at 95: %+v", c.Algorithm, d)
		}
		if d := b.decide(withCost(c, 0)); !d.Allowed || d.States[0].Remaining != 0 {
			t.Errorf("%s: a look at a dry counter: %+v", c.Algorithm, d)
		}
	}
}

func TestZeroAndUnlimited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []limit.Counter{fixed(0), gcra(0, 0), quota(0)} {
		for _, cost := range []int64{0, 1} {
			if d := b.decide(withCost(c, cost)); d.Allowed || !d.States[0].Never || d.States[0].RetryAfter != 0 {
				t.Errorf("%s of 0 at cost %d: %+v", c.Algorithm, cost, d)
			}
		}
	}
	for _, c := range []limit.Counter{fixed(0), gcra(0, 0), quota(0)} {
		c.Unlimited = true
		d := b.decide(withCost(c, limit.MaxInteger))
		if !d.Allowed || !d.States[0].Unlimited {
			t.Errorf("unlimited %s: %+v", c.Algorithm, d)
		}
	}
	if d := b.decide(withCost(quota(5), 0)); d.States[0].Consumed != limit.MaxInteger || d.States[0].Remaining != 0 {
		t.Errorf("unlimited did not count: %+v", d)
	}
	if keys := b.keys(); len(keys) != 1 {
		t.Errorf("keys %q, want the quota's alone", keys)
	}
}

func TestOneDeniesNothingIsCharged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.decide(quota(1))
	before := b.server.Dump()
	d := b.decide(fixed(10), gcra(10, 10), quota(1))
	if d.Allowed || !d.States[0].Allowed || !d.States[1].Allowed || d.States[2].Allowed {
		t.Fatalf("%+v", d)
	}
	if d.States[0].Remaining != 10 || d.States[1].Remaining != 10 {
		t.Errorf("remaining after a denial: %+v", d.States)
	}
	if after := b.server.Dump(); after != before {
		t.Errorf("charged:\n%s\nwas:\n%s", after, before)
	}
}

func TestBrokenKeyChargesNothing(t *testing.T) {
	t.Parallel()
	for _, broken := range []limit.Counter{fixed(10), gcra(10, 10), quota(10)} {
		for name, spoil := range map[string]func(b *bench, key string){
			"list": func(b *bench, key string) { _, _ = b.server.Lpush(key, "x") },
			"text": func(b *bench, key string) { _ = b.server.Set(key, "x") },
			"sign": func(b *bench, key string) { _ = b.server.Set(key, "-1") },
			"half": func(b *bench, key string) { _ = b.server.Set(key, "1.5") },
		} {
			b := newBench(t)
			broken.Key = "bad"
			key := "p:bad"
			if broken.Algorithm.Quota() {
				key += ":month:202607:c"
			}
			spoil(b, key)
			before := b.server.Dump()
			_, err := b.Decide(t.Context(), []limit.Counter{quota(10), broken, fixed(10)})
			if !errors.Is(err, limit.ErrCounterBroken) {
				t.Errorf("%s, %s: error %v", broken.Algorithm, name, err)
			}
			if after := b.server.Dump(); after != before {
				t.Errorf("%s, %s: charged:\n%s", broken.Algorithm, name, after)
			}
			if !b.Available() {
				t.Error("a broken key opened the breaker")
			}
		}
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.wait(15 * time.Second)
	b.decide(fixed(2), gcra(20, 5), quota(2))
	end := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	for key, want := range map[string]time.Duration{
		"p:{t:a}:t::m:fixed:60":             45 * time.Second,
		"p:{t:a}:t::m:gcra:60":              3 * time.Second,
		"p:{t:a}:t::m:quota:month:202607:c": end.Sub(b.now) + 72*time.Hour,
	} {
		// gcra's is rounded up to a second.
		if got := b.server.TTL(key); got < want || got > want+time.Second || got > want && !strings.Contains(key, "gcra") {
			t.Errorf("%s expires in %s, want %s", key, got, want)
		}
	}
	// Traffic does not move a window's end.
	b.wait(40 * time.Second)
	b.decide(fixed(2))
	if got := b.server.TTL("p:{t:a}:t::m:fixed:60"); got > 5*time.Second+time.Millisecond {
		t.Errorf("traffic moved the window's end to %s", got)
	}
}

// Stripped of its expiry a live key gets it back: from each denial, from each
// charge of a bucket, and of the others from one in sixteen.
func TestStrippedExpiryComesBack(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{fixed(20), sliding(20), gcra(20, 20), bucket(20, 20), quota(20)} {
		for _, used := range []int{1, 20} { // to be charged, to be denied
			b := newBench(t)
			b.passes(used, c)
			key := b.keys()[0]
			if b.server.TTL(key) == 0 {
				t.Fatalf("%s without expiry", key)
			}
			cmd := redis.NewClient(&redis.Options{Addr: b.server.Addr()})
			if err := cmd.Persist(t.Context(), key).Err(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Close()
			b.passes(16, c)
			if b.server.TTL(key) == 0 {
				t.Errorf("%s did not get its expiry back, %d used", key, used)
			}
		}
	}
}

// A denial gives a lost expiry back as of what stands, not of what the denied
// decision had done to the key: what it gave back is used again.
func TestStrippedExpiryComesBackAsOfWhatStands(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{gcra(20, 20), bucket(20, 20)} {
		b := newBench(t)
		b.passes(20, c)
		key := b.keys()[0]
		want := b.server.TTL(key)
		cmd := redis.NewClient(&redis.Options{Addr: b.server.Addr()})
		if err := cmd.Persist(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Close()
		if b.decide(withCost(c, -20), withCost(c, 21)).Allowed {
			t.Fatal("passed above the burst")
		}
		if got := b.server.TTL(key); got != want {
			t.Errorf("%s expires in %s, want %s", key, got, want)
		}
	}
}

func TestClockBackRefillsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{fixed(4), gcra(4, 4), quota(4)} {
		b := newBench(t)
		b.passes(4, c)
		b.wait(-5 * time.Second)
		if n := b.passes(10, c); n != 0 {
			t.Errorf("%s: %d passed after the clock stepped back", c.Algorithm, n)
		}
	}
}

func TestSteadyTrafficAndWindows(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	passed := 0
	for range 180 { // 10 a second would be allowed 5
		passed += b.passes(1, fixed(5))
		b.wait(time.Second)
	}
	if passed != 15 {
		t.Errorf("%d passed in three windows of 5", passed)
	}
}

func TestSameKeyTwiceIsChargedTheSum(t *testing.T) {
	t.Parallel()
	for _, c := range []limit.Counter{fixed(10), gcra(10, 10), quota(10)} {
		b := newBench(t)
		d := b.decide(withCost(c, 4), withCost(c, 5))
		if !d.Allowed || d.States[0].Remaining != 1 || d.States[1].Remaining != 1 {
			t.Errorf("%s: %+v", c.Algorithm, d)
		}
		if d := b.decide(withCost(c, 1), withCost(c, 1)); d.Allowed || d.States[0].Remaining != 1 {
			t.Errorf("%s: 2 of 1 left: %+v", c.Algorithm, d)
		}
	}
}

func TestGatewayClockDoesNotMatter(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-10 * time.Second, 10 * time.Second, -400 * 24 * time.Hour} {
		server := miniredis.RunT(t)
		redisNow := time.Date(2026, 7, 31, 23, 59, 55, 0, time.UTC)
		server.SetTime(redisNow)
		client := newClient(t, server.Addr())
		s := newStore(t, client, Options{Now: func() time.Time { return redisNow.Add(off) }})
		d, err := s.Decide(t.Context(), []limit.Counter{quota(10), gcra(10, 10)})
		if err != nil || !d.Allowed || d.States[0].Key != "{t:a}:t::m:quota:month:202607" || d.States[0].Consumed != 1 {
			t.Fatalf("%s off: %+v, %v", off, d, err)
		}
		if got := guess(s); !got.Equal(redisNow) {
			t.Errorf("%s off: learned %s", off, got)
		}
	}
}

func TestNoCountersNoCall(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.Close()
	if d := b.decide(); !d.Allowed || len(d.States) != 0 {
		t.Errorf("%+v", d)
	}
}

func TestDoneContextAsksNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Decide(ctx, []limit.Counter{quota(1)}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(b.keys()) != 0 {
		t.Error("charged")
	}
}

func TestInvalidCountersAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []limit.Counter{
		{Key: "k"}, withCost(fixed(1), -limit.MaxInteger-1), withCost(quota(1), limit.MaxInteger+1), quota(-1),
		gcra(1, 0), gcra(1, 1<<53), gcra(limit.MaxGCRALimit+1, 1),
	} {
		if _, err := b.Decide(t.Context(), []limit.Counter{c}); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

func TestScriptFlushIsNoError(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 3 {
		if d := b.decide(quota(10)); !d.Allowed {
			t.Fatalf("%+v", d)
		}
		cmd := redis.NewClient(&redis.Options{Addr: b.server.Addr()})
		if err := cmd.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Close()
	}
	if d := b.decide(withCost(quota(10), 0)); d.States[0].Consumed != 3 {
		t.Errorf("3 charges, consumed %d", d.States[0].Consumed)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	if _, err := New(client, Options{}); !errors.Is(err, errNoDeadlines) {
		t.Errorf("a client without deadlines: %v", err)
	}
	o := &redis.UniversalOptions{}
	Configure(o, 0)
	if _, err := New(redis.NewUniversalClient(o), Options{KeyPrefix: "{x"}); err == nil {
		t.Error("a prefix with a brace was taken")
	}
}
