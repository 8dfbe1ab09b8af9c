package cache_test

import (
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// With flight and lock, XFetch's refreshes are one, however many processes draw at once.
func TestXFetchWithFlightAndLockRefreshesOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	var nodes []*cache.Cache[string]
	// The clock turns while a load is held, so a load "takes" a second.
	slow := func(o *options) {
		o.Load, o.Beta = src.load, 1
		o.Random = func() float64 { return 0.999 } // u = 0.001: draws up to 6.9 deltas early
	}
	for range 4 {
		nodes = append(nodes, s.node(slow))
	}
	begun, release := src.held()
	first := make(chan string, 1)
	go func() { first <- get(t, nodes[0], "k").Value }()
	await(t, begun, "the first load")
	s.advance(time.Second)
	release()
	await(t, first, "the first reader")
	for _, n := range nodes {
		get(t, n, "k")
	}
	s.advance(52 * time.Second)
	for _, n := range nodes {
		get(t, n, "k") // past L1TTL: confirms, but draws only at its next read
	}
	if n := src.loads.Load(); n != 1 {
		t.Fatalf("%d loads 8 s before expiry", n)
	}
	s.advance(3 * time.Second)
	src.set(func(s *source) { s.version++ })
	begun, release = src.held()
	readers(40, func(i int) {
		if r := get(t, nodes[i%4], "k"); r.Value != "k@0" || r.Source != cache.HitL1 {
			t.Errorf("a reader waited: %q from %s", r.Value, r.Source)
		}
	})
	await(t, begun, "the refresh")
	release()
	for _, n := range nodes {
		eventually(t, "the new value everywhere", func() bool { return get(t, n, "k").Value == "k@1" })
		eventually(t, "all refreshes to end", func() bool { return !cache.Refreshing(n, "k") })
	}
	if n := src.loads.Load(); n != 2 {
		t.Errorf("%d loads, want the first and one refresh", n)
	}
}

func TestAdviceFollowsTheNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		rate               float64
		delta, budget, ttl time.Duration
		want               cache.Method
	}{
		{"nothing known", 0, 0, 0, time.Minute, cache.UseLock},
		{"the shop window, may be stale", 12000, 900 * time.Millisecond, 10 * time.Second, time.Minute, cache.UseSWR},
		{"the shop window, may not", 12000, 900 * time.Millisecond, 0, time.Minute, cache.UseXFetch},
		{"budget shorter than a load", 12000, 900 * time.Millisecond, 100 * time.Millisecond, time.Minute, cache.UseXFetch},
		{"hardly read", 0.5, 100 * time.Millisecond, 0, time.Minute, cache.UseLock},
		{"load as long as the ttl", 100, 10 * time.Second, 0, 20 * time.Second, cache.UseLock},
		{"too few to draw in time", 1.3, time.Second, 0, time.Minute, cache.UseLock},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := cache.Advise(c.rate, c.delta, c.budget, c.ttl, 1)
			if a.Method != c.want || a.Why == "" {
				t.Errorf("%s: %s", a.Method, a.Why)
			}
			t.Logf("%s: %s", a.Method, a.Why)
		})
	}
}

func TestExplainMeasures(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	c := s.node(func(o *options) {
		o.Load, o.StaleWhileRevalidate, o.TTL, o.L1TTL = src.load, time.Minute, time.Hour, time.Hour
	})
	begun, release := src.held()
	done := make(chan string, 1)
	go func() { done <- get(t, c, "k").Value }()
	await(t, begun, "the load")
	s.advance(2 * time.Second)
	release()
	await(t, done, "the reader")
	for range 100 {
		get(t, c, "k")
	}
	s.advance(18 * time.Second)
	a := c.Explain("k")
	if a.Method != cache.UseSWR || a.Rate < 4 || a.Rate > 6 || a.Delta < 2*time.Second || a.Delta > 3*time.Second {
		t.Errorf("advice %+v", a)
	}
	if b := c.Explain("never read"); b.Method != cache.UseLock {
		t.Errorf("advice %+v", b)
	}
}
