package cache_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/cache"
)

func TestEightAtOnceAreOneMissAndSevenCoalesced(t *testing.T) {
	t.Parallel()
	for name, local := range map[string]bool{"with redis": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var src source
			begun, release := src.held()
			reg := prometheus.NewRegistry()
			c := newStand(t).node(func(o *options) {
				o.Load, o.Metrics = src.load, cache.NewMetrics(reg)
				if local {
					o.Redis = nil
				}
			})
			done := make(chan struct{})
			go func() {
				defer close(done)
				readers(8, func(int) {
					if r := get(t, c, "k"); r.Value != "k@0" {
						t.Errorf("got %q", r.Value)
					}
				})
			}()
			await(t, begun, "the load")
			eventually(t, "all to join", func() bool { return cache.Waiters(c, "k") == 8 })
			release()
			await(t, done, "the readers")
			m := counters(t, reg)
			for name, want := range map[string]float64{
				"cache_requests_total/miss": 1, "cache_requests_total/coalesced": 7, "cache_requests_total/hit_l1": 0,
				"cache_requests_total/hit_l2": 0, "cache_requests_total/stale": 0, "cache_requests_total/fallback": 0,
				"cache_load_waiters/leader/sum": 8, "cache_loads_total/ok": 1, "cache_loads_in_flight_per_key_max": 1,
				"cache_loads_overlapping_total": 0,
			} {
				if m[name] != want {
					t.Errorf("%s is %g, want %g", name, m[name], want)
				}
			}
			wants(t, get(t, c, "k"), "k@0", cache.HitL1)
			if n := src.loads.Load(); n != 1 {
				t.Errorf("%d loads", n)
			}
		})
	}
}

func TestLayers(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	a := s.node(func(o *options) { o.Load = src.load })
	b := s.node(func(o *options) { o.Load = src.load })
	wants(t, get(t, a, "k"), "k@0", cache.Miss)
	wants(t, get(t, b, "k"), "k@0", cache.HitL2)
	wants(t, get(t, b, "k"), "k@0", cache.HitL1)
	s.advance(6 * time.Second) // past L1TTL
	r := get(t, b, "k")
	wants(t, r, "k@0", cache.HitL2)
	if r.Age < 5*time.Second || r.Age > 8*time.Second || r.Fresh < 52*time.Second || r.Fresh > 55*time.Second {
		t.Errorf("age %s, fresh for %s", r.Age, r.Fresh)
	}
	s.advance(time.Minute)
	src.set(func(s *source) { s.version++ })
	wants(t, get(t, b, "k"), "k@1", cache.Miss)
	wants(t, get(t, a, "k"), "k@1", cache.HitL2)
}

// The first caller is no more than the others: its end, and that of all of them, is not the load's.
func TestCancelledCallersCancelNoLoad(t *testing.T) {
	t.Parallel()
	var src source
	begun, release := src.held()
	c := newStand(t).node(func(o *options) { o.Load = src.load })
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, err := c.Get(ctx, "k"); first <- err }()
	await(t, begun, "the load")
	others := make(chan string, 3)
	for range 3 {
		go func() { others <- get(t, c, "k").Value }()
	}
	eventually(t, "all to join", func() bool { return cache.Waiters(c, "k") == 4 })
	cancel()
	if err := await(t, first, "the first"); !errors.Is(err, context.Canceled) {
		t.Fatalf("the first caller got %v", err)
	}
	release()
	for range 3 {
		if v := await(t, others, "a waiter"); v != "k@0" {
			t.Fatalf("a waiter got %q", v)
		}
	}
	if src.loads.Load() != 1 {
		t.Fatalf("%d loads", src.loads.Load())
	}
}

// Nobody waits any more: the load ends into the cache, or clients that give up sooner than a load takes would never
// see it filled.
func TestAbandonedLoadFillsTheCache(t *testing.T) {
	t.Parallel()
	var src source
	begun, release := src.held()
	c := newStand(t).node(func(o *options) { o.Load = src.load })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := c.Get(ctx, "k"); ended <- err }()
	await(t, begun, "the load")
	cancel()
	await(t, ended, "the caller")
	release()
	eventually(t, "the value", func() bool { return get(t, c, "k").Source == cache.HitL1 })
	if src.loads.Load() != 1 {
		t.Fatalf("%d loads", src.loads.Load())
	}
}

func TestPanicFreesTheLock(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	begun, release := src.held()
	var panics atomic.Int64
	load := func(ctx context.Context, key string) (cache.Loaded[string], error) {
		v, err := src.load(ctx, key)
		if panics.Add(1) == 1 {
			panic("boom")
		}
		return v, err
	}
	a := s.node(func(o *options) { o.Load = load })
	b := s.node(func(o *options) { o.Load = load })
	errs := make(chan error, 2)
	go func() { _, err := a.Get(t.Context(), "k"); errs <- err }()
	await(t, begun, "the load")
	go func() { _, err := a.Get(t.Context(), "k"); errs <- err }()
	eventually(t, "the second to join", func() bool { return cache.Waiters(a, "k") == 2 })
	far := make(chan error, 1)
	go func() { _, err := b.Get(t.Context(), "k"); far <- err }()
	eventually(t, "the other process to wait", func() bool { return cache.Paused(b, "k") })
	release()
	for range 2 {
		var p *cache.PanicError
		if err := await(t, errs, "a waiter"); !errors.As(err, &p) || p.Value != "boom" || len(p.Stack) == 0 || errors.Is(err, cache.ErrNotFound) {
			t.Errorf("a waiter got %v", err)
		}
	}
	var r *cache.RemoteError
	if err := await(t, far, "the other process"); !errors.As(err, &r) {
		t.Errorf("the waiter elsewhere got %v", err)
	}
	wants(t, get(t, b, "other"), "other@0", cache.Miss)
	if v := get(t, a, "k").Value; v != "k@0" {
		t.Errorf("the next call got %q", v)
	}
}

// A failure reaches everyone who waits for that run, in all processes, as what it is.
func TestFailureReachesEveryWaiterOfItsRun(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	src := source{err: errors.New("database on fire")}
	begun, release := src.held()
	reg := prometheus.NewRegistry()
	a := s.node(func(o *options) { o.Load = src.load })
	b := s.node(func(o *options) { o.Load, o.Metrics = src.load, cache.NewMetrics(reg) })
	near, far := make(chan error, 1), make(chan error, 1)
	go func() { _, err := a.Get(t.Context(), "k"); near <- err }()
	await(t, begun, "the load")
	go func() { _, err := b.Get(t.Context(), "k"); far <- err }()
	eventually(t, "the other process to meet the lock", func() bool { return cache.Paused(b, "k") })
	release()
	if err := await(t, near, "the leader"); err == nil || err.Error() != "database on fire" {
		t.Errorf("the leader got %v", err)
	}
	var r *cache.RemoteError
	if err := await(t, far, "the follower"); !errors.As(err, &r) || r.Text != "database on fire" || errors.Is(err, cache.ErrNotFound) {
		t.Errorf("the follower got %v", err)
	}
	if m := counters(t, reg); m["cache_load_waiters/follower/sum"] != 1 || m["cache_load_waiters/leader"] != 0 || m["cache_requests_total/error"] != 1 {
		t.Errorf("the follower's metrics: %v", m)
	}
	if n := src.loads.Load(); n != 1 {
		t.Errorf("%d loads", n)
	}
}

func TestHangingLoaderFreesTheLock(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var calls atomic.Int64
	free := make(chan struct{})
	t.Cleanup(func() { close(free) })
	reg := prometheus.NewRegistry()
	c := s.node(func(o *options) {
		o.LoadTimeout, o.WaitTimeout, o.Metrics = 50*time.Millisecond, patience, cache.NewMetrics(reg)
		o.Load = func(context.Context, string) (cache.Loaded[string], error) {
			if calls.Add(1) == 1 {
				<-free // deaf to its context
			}
			return cache.Loaded[string]{Value: "v"}, nil
		}
	})
	if _, err := c.Get(t.Context(), "k"); !errors.Is(err, cache.ErrLoadTimeout) {
		t.Fatalf("got %v", err)
	}
	wants(t, get(t, c, "k"), "v", cache.Miss)
	// What the operators are told: it happened once, which an alert may forget, and how bad it was.
	if m := counters(t, reg); m["cache_loads_overlapping_total"] != 1 || m["cache_loads_in_flight_per_key_max"] != 2 {
		t.Errorf("%g overlaps, at most %g at once", m["cache_loads_overlapping_total"], m["cache_loads_in_flight_per_key_max"])
	}
}

func TestNestedLoadsEnd(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var c *cache.Cache[string]
	next := map[string]string{"self": "self", "a": "b", "b": "c", "c": "a"}
	c = s.node(func(o *options) {
		o.Load = func(ctx context.Context, key string) (cache.Loaded[string], error) {
			to, ok := next[key]
			if !ok {
				return cache.Loaded[string]{Value: key}, nil
			}
			v, err := c.Get(ctx, to)
			return cache.Loaded[string]{Value: v}, err
		}
	})
	next["x"] = "leaf"
	for _, key := range []string{"self", "a"} {
		if _, err := c.Get(t.Context(), key); !errors.Is(err, cache.ErrNested) {
			t.Errorf("%s: %v", key, err)
		}
	}
	wants(t, get(t, c, "x"), "leaf", cache.Miss)
}

func TestNegativeAnswersAreCached(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	src := source{err: cache.ErrNotFound}
	a := s.node(func(o *options) { o.Load, o.NegativeTTL, o.StaleIfError = src.load, time.Second, time.Hour })
	b := s.node(func(o *options) { o.Load, o.NegativeTTL, o.StaleIfError = src.load, time.Second, time.Hour })
	for _, c := range []*cache.Cache[string]{a, a, b, b} {
		if _, err := c.Get(t.Context(), "k"); !errors.Is(err, cache.ErrNotFound) {
			t.Fatalf("got %v", err)
		}
	}
	if src.loads.Load() != 1 {
		t.Fatalf("%d loads", src.loads.Load())
	}
	s.advance(1500 * time.Millisecond)
	src.set(func(s *source) { s.err = nil })
	wants(t, get(t, b, "k"), "k@0", cache.Miss)
	// Gone: the answer is not hidden by the value that was there.
	s.advance(2 * time.Minute)
	src.set(func(s *source) { s.err = cache.ErrNotFound })
	if _, err := b.Get(t.Context(), "k"); !errors.Is(err, cache.ErrNotFound) {
		t.Fatalf("404 is hidden: %v", err)
	}
}

func TestClosedCacheSaysSo(t *testing.T) {
	t.Parallel()
	c, err := cache.New(options{Family: "test", TTL: time.Minute, Load: (&source{}).load})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "k"); !errors.Is(err, cache.ErrClosed) {
		t.Fatalf("got %v", err)
	}
}
