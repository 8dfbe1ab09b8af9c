package cache_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/cache"
)

// RFC 5861, section 3: served stale while one refreshes, and never past the limit.
func TestStaleWhileRevalidate(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	c := s.node(func(o *options) { o.Load, o.StaleWhileRevalidate = src.load, 30*time.Second })
	get(t, c, "k")
	s.advance(70 * time.Second)
	src.set(func(s *source) { s.version++ })
	begun, release := src.held()
	for range 20 {
		r := get(t, c, "k")
		wants(t, r, "k@0", cache.Stale)
		if r.Err != nil || r.Fresh > -9*time.Second {
			t.Fatalf("%+v", r)
		}
	}
	await(t, begun, "the refresh")
	release()
	eventually(t, "the new value", func() bool { return get(t, c, "k").Value == "k@1" })
	if n := src.loads.Load(); n != 2 {
		t.Errorf("%d loads", n)
	}
	// Past the limit it is absent, also to one who cannot load.
	s.advance(91 * time.Second)
	src.set(func(s *source) { s.err = errors.New("down") })
	if r, err := c.Fetch(t.Context(), "k"); err == nil {
		t.Fatalf("served %q past the limit", r.Value)
	}
}

// Operators see that stale answers come near their limit, and that the breaker holds a source's loads back.
func TestLimitsAndBreakerAreSeen(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	reg := prometheus.NewRegistry()
	c := s.node(func(o *options) {
		o.Load, o.StaleIfError, o.BreakerFailures, o.BreakerProbe, o.Metrics = src.load, 100*time.Second, 3, 10*time.Second, cache.NewMetrics(reg)
	})
	sees := func(when string, nearLimit, sourceUp float64) {
		t.Helper()
		got := counters(t, reg)
		if got["cache_stale_near_limit_total"] != nearLimit || got["cache_source_up"] != sourceUp || got["cache_redis_up"] != 1 {
			t.Errorf("%s: %v near the limit, source up %v, redis up %v", when, got["cache_stale_near_limit_total"], got["cache_source_up"], got["cache_redis_up"])
		}
	}
	sees("before the first read", 0, 1)
	get(t, c, "k")
	src.set(func(s *source) { s.err = errors.New("down") })
	s.advance(110 * time.Second)
	wants(t, get(t, c, "k"), "k@0", cache.Stale)
	sees("in the middle of the time", 0, 1)
	for _, key := range []string{"a", "b"} {
		if _, err := c.Get(t.Context(), key); err == nil {
			t.Fatal("a dead source answered")
		}
	}
	sees("behind three failures", 0, 0)
	s.advance(45 * time.Second)
	wants(t, get(t, c, "k"), "k@0", cache.Stale)
	sees("near the limit", 1, 0)
	src.set(func(s *source) { s.err = nil })
	s.advance(20 * time.Second)
	get(t, c, "k")
	sees("when the source is back", 1, 1)
}

// A source down for ten minutes: asked ever more rarely, stale to its limit, then the error; 404 is not hidden.
func TestStaleIfErrorWithBackoff(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	down := errors.New("500")
	set := func(o *options) {
		o.Load, o.StaleIfError, o.BackoffMin, o.BackoffMax, o.BreakerFailures = src.load, 5*time.Minute, time.Second, 30*time.Second, 1e6
	}
	a, b := s.node(set), s.node(set)
	get(t, a, "k")
	src.set(func(s *source) { s.err = down })
	s.advance(61 * time.Second)
	limit := 5*time.Minute - time.Second
	for past := time.Second; past < 10*time.Minute; past += 500 * time.Millisecond {
		for _, c := range []*cache.Cache[string]{a, b} {
			r, err := c.Fetch(t.Context(), "k")
			switch {
			case past < limit && (err != nil || r.Source != cache.Stale || r.Err == nil):
				t.Fatalf("%s past expiry: %+v, %v", past, r, err)
			case past > limit+2*time.Second && err == nil:
				t.Fatalf("%s past expiry: served %+v", past, r)
			case err != nil && errors.Is(err, cache.ErrNotFound):
				t.Fatal("the failure looks like absence")
			}
		}
		s.advance(500 * time.Millisecond)
	}
	// 2,400 reads in 600 s; full jitter up to 30 s is a load in 15 s on average.
	if n := src.loads.Load(); n > 150 || n < 15 {
		t.Errorf("%d loads of a dead source", n)
	}
	src.set(func(s *source) { s.err = cache.ErrNotFound })
	s.advance(31 * time.Second)
	if _, err := a.Get(t.Context(), "k"); !errors.Is(err, cache.ErrNotFound) {
		t.Fatalf("404 is hidden: %v", err)
	}
}

// An answer of the source that the application does not count as failure is passed on, not hidden, not retried.
func TestAnswersAreNotHidden(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	forbidden := errors.New("403")
	c := s.node(func(o *options) {
		o.Load, o.StaleIfError, o.Retries = src.load, time.Hour, 3
		o.IsFailure = func(err error) bool { return !errors.Is(err, forbidden) }
	})
	get(t, c, "k")
	s.advance(61 * time.Second)
	src.set(func(s *source) { s.err = forbidden })
	for range 3 {
		if _, err := c.Get(t.Context(), "k"); !errors.Is(err, forbidden) {
			t.Fatalf("got %v", err)
		}
	}
	if n := src.loads.Load(); n != 4 {
		t.Errorf("%d loads", n)
	}
}

// The breaker opens over all keys; the fallback is marked, and never stored.
func TestFallbackIsMarkedAndNeverStored(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	src := source{err: errors.New("down")}
	set := func(o *options) {
		o.Load, o.BreakerFailures, o.BreakerProbe = src.load, 3, 10*time.Second
		o.Fallback = func(string) (string, bool) { return "sorry", true }
	}
	a, b := s.node(set), s.node(set)
	for i := range 20 {
		r := get(t, a, "k"+strings.Repeat("x", i))
		wants(t, r, "sorry", cache.Fallback)
		if i > 3 && !errors.Is(r.Err, cache.ErrSourceDown) {
			t.Fatalf("stands in for %v", r.Err)
		}
	}
	if n := src.loads.Load(); n != 3 {
		t.Fatalf("%d loads through an open breaker", n)
	}
	for _, key := range s.mini.Keys() {
		if strings.HasSuffix(key, ":v") {
			t.Fatalf("a fallback is stored under %s", key)
		}
	}
	src.set(func(s *source) { s.err = nil })
	wants(t, get(t, b, "kxxxxxxx"), "kxxxxxxx@0", cache.Miss)
	s.advance(11 * time.Second)
	wants(t, get(t, a, "ky"), "ky@0", cache.Miss)
}

func TestRetriesStayWithinTheirBudget(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	src := source{err: errors.New("down")}
	c := s.node(func(o *options) {
		o.Load, o.Retries, o.RetryMin, o.RetryMax, o.BreakerFailures = src.load, 3, time.Microsecond, time.Microsecond, 1e6
	})
	const keys = 100
	for i := range keys {
		if _, err := c.Get(t.Context(), strings.Repeat("k", i+1)); err == nil {
			t.Fatal("no error")
		}
	}
	// The reserve of ten, and a tenth of the loads.
	if n := src.loads.Load(); n > keys+10+keys/10+1 || n < keys+10 {
		t.Errorf("%d calls for %d loads", n, keys)
	}
	// A mishap is retried, and nobody sees it.
	fails := 1
	d := s.node(func(o *options) {
		o.Retries, o.RetryMin = 1, time.Microsecond
		o.Load = func(context.Context, string) (cache.Loaded[string], error) {
			if fails--; fails >= 0 {
				return cache.Loaded[string]{}, errors.New("blip")
			}
			return cache.Loaded[string]{Value: "v"}, nil
		}
	})
	wants(t, get(t, d, "blip"), "v", cache.Miss)
}

// 1,000 keys loaded together do not expire together.
func TestJitterSpreadsExpiry(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	c := s.node(func(o *options) { o.Load, o.Jitter, o.L1Size = src.load, 0.15, -1 })
	const keys = 1000
	expiries := map[int]int{} // second to keys
	for i := range keys {
		key := strconv.Itoa(i)
		get(t, c, key)
		r := get(t, c, key)
		if r.Fresh < 50*time.Second || r.Fresh > 69100*time.Millisecond {
			t.Fatalf("fresh for %s: not within 15 %%", r.Fresh)
		}
		expiries[int(r.Fresh/time.Second)]++
		phys := s.mini.TTL("cache:test:{" + key + "}:v")
		if ratio := float64(phys) / float64(r.Fresh+r.Age); ratio < 1.95 || ratio > 2.05 {
			t.Fatalf("physical TTL is %.2f × the logical one: two draws", ratio)
		}
	}
	mean, peak := float64(keys)/18, 0
	for _, n := range expiries {
		peak = max(peak, n)
	}
	if float64(peak) >= 2*mean {
		t.Errorf("%d expire in one second, the mean is %.0f", peak, mean)
	}
}

// 1,000 keys that were warmed together and are read all the time are loaded anew at a rate that has no peak.
func TestWarmedTogetherLoadedApart(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	const keys, ttl = 1000, time.Minute
	c := s.node(func(o *options) {
		o.Load, o.TTL, o.Jitter, o.L1Size, o.Redis = src.load, ttl, 0.15, 2*keys, nil
	})
	read := func() (loads int64) {
		before := src.loads.Load()
		readers(10, func(i int) {
			for k := i; k < keys; k += 10 {
				get(t, c, strconv.Itoa(k))
			}
		})
		return src.loads.Load() - before
	}
	if n := read(); n != keys {
		t.Fatalf("warming took %d loads", n)
	}
	const spread = 18 // seconds: 15 % of the TTL to both sides
	s.advance(ttl - spread/2*time.Second)
	peak, total := int64(0), read()
	for range spread + 1 {
		s.advance(time.Second)
		n := read()
		peak, total = max(peak, n), total+n
	}
	if mean := float64(keys) / spread; total != keys || float64(peak) >= 2*mean {
		t.Errorf("%d loads, %d of them in one second; the mean is %.0f", total, peak, mean)
	}
}

func TestTTLOfTheLoad(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	n := 0
	c := s.node(func(o *options) {
		o.Load = func(context.Context, string) (cache.Loaded[string], error) {
			n++
			return cache.Loaded[string]{Value: "v", TTL: 3 * time.Second, StaleIfError: -1}, nil
		}
		o.StaleIfError = time.Hour
	})
	get(t, c, "k")
	s.advance(2 * time.Second)
	wants(t, get(t, c, "k"), "v", cache.HitL1)
	s.advance(1100 * time.Millisecond)
	wants(t, get(t, c, "k"), "v", cache.Miss)
	if n != 2 {
		t.Errorf("%d loads", n)
	}
}
