package cache_test

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/cache"
)

// A leader that stands still past its lease is overtaken; when it wakes, its older value is refused, here and to those
// who waited for it.
func TestSlowOldLeaderCannotOverwrite(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	reg := prometheus.NewRegistry()
	// An hour between renewals: this leader is as good as stopped.
	a := s.node(func(o *options) { o.Load, o.Lease, o.Metrics = src.load, time.Hour, cache.NewMetrics(reg) })
	b := s.node(func(o *options) { o.Load = src.load })
	begun, release := src.held()
	old := make(chan string, 1)
	go func() { old <- get(t, a, "k").Value }()
	await(t, begun, "the old leader's load")
	s.advance(time.Hour + time.Second)
	src.set(func(s *source) { s.version++; s.hold, s.begun = nil, nil })
	wants(t, get(t, b, "k"), "k@1", cache.Miss)
	release()
	if v := await(t, old, "the old leader"); v != "k@1" {
		t.Errorf("the old leader's reader got %q", v)
	}
	for _, c := range []*cache.Cache[string]{a, b} {
		wants(t, get(t, c, "k"), "k@1", cache.HitL1)
	}
	wants(t, get(t, s.node(func(o *options) { o.Load = src.load }), "k"), "k@1", cache.HitL2)
	if m := counters(t, reg); m["cache_lock_lost_total/lost"] != 1 {
		t.Errorf("lost locks: %v", m)
	}
}

// The reader that draws an early refresh goes away: the refresh goes on, and the lock is free after it.
func TestEarlyRefresherCancels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set   func(*options)
		later time.Duration
		from  cache.Source
	}{
		"xfetch": {func(o *options) {
			o.Beta = 1
			o.Random = func() float64 { return 0.999 } // u = 0.001: draws up to 6.9 deltas early
		}, 55 * time.Second, cache.HitL1},
		"stale-while-revalidate": {func(o *options) { o.StaleWhileRevalidate = time.Minute }, 61 * time.Second, cache.Stale},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			var src source
			a := s.node(func(o *options) { o.Load, o.L1TTL = src.load, time.Hour; c.set(o) })
			begun, release := src.held()
			first := make(chan string, 1)
			go func() { first <- get(t, a, "k").Value }()
			await(t, begun, "the load")
			s.advance(time.Second) // what it takes
			release()
			await(t, first, "the first reader")
			s.advance(c.later)
			src.set(func(s *source) { s.version++ })
			begun, release = src.held()
			eventually(t, "a refresh to begin", func() bool {
				wants(t, get(t, a, "k"), "k@0", c.from) // this caller is gone at once
				return cache.Refreshing(a, "k")
			})
			await(t, begun, "the refresh")
			if !s.mini.Exists("cache:test:{k}:l") {
				t.Fatal("no lock while it loads")
			}
			release()
			eventually(t, "the refresh to end", func() bool { return !cache.Refreshing(a, "k") })
			if s.mini.Exists("cache:test:{k}:l") {
				t.Fatal("the lock is left")
			}
			wants(t, get(t, a, "k"), "k@1", cache.HitL1)
		})
	}
}

// Redis down: memory and stale values go on within their limits, loads are one a key and few in all.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	c := s.node(func(o *options) {
		o.Load, o.StaleWhileRevalidate, o.MaxLoadsRedisDown, o.RedisTimeout = src.load, 10*time.Second, 2, 50*time.Millisecond
		o.RedisDownLimit = time.Hour
	})
	get(t, c, "k")
	s.mini.Close()
	s.offset.Add(int64(10 * time.Second)) // past L1TTL
	wants(t, get(t, c, "k"), "k@0", cache.HitL1)
	s.offset.Add(int64(55 * time.Second)) // past TTL
	wants(t, get(t, c, "k"), "k@0", cache.Stale)
	eventually(t, "the refresh to end", func() bool { return !cache.Refreshing(c, "k") })
	src.loads.Store(0)
	begun, release := src.held()
	done := make(chan struct{})
	go func() {
		defer close(done)
		readers(60, func(i int) { get(t, c, string(rune('a'+i%6))) })
	}()
	await(t, begun, "a load")
	await(t, begun, "a load")
	eventually(t, "all to wait", func() bool {
		n := 0
		for i := range 6 {
			n += cache.Waiters(c, string(rune('a'+i)))
		}
		return n == 60
	})
	release()
	await(t, done, "the readers")
	if src.loads.Load() != 6 || src.most.Load() != 2 {
		t.Errorf("%d loads, %d at once; want 6, 2", src.loads.Load(), src.most.Load())
	}
	if err := c.Invalidate(t.Context(), "k"); !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("invalidate: %v", err)
	}
	// Beyond RedisDownLimit nothing unconfirmed is served.
	src.set(func(s *source) { s.err = errors.New("down") })
	s.offset.Add(int64(2 * time.Hour))
	if r, err := c.Fetch(t.Context(), "a"); err == nil {
		t.Errorf("served %+v", r)
	}
	if err := s.mini.Restart(); err != nil {
		t.Fatal(err)
	}
	src.set(func(s *source) { s.err = nil })
	eventually(t, "redis to be used again", func() bool {
		_, err := c.Get(t.Context(), "new")
		return err == nil && s.mini.Exists("cache:test:{new}:v") || c.Clear(t.Context(), "new") != nil
	})
}
