package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// A look finds what is there, here or in Redis, fresh or stale within its limits, and never asks the source.
func TestPeekLoadsNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	src := &source{}
	set := func(o *options) { o.Load, o.StaleWhileRevalidate = src.load, time.Minute }
	a, b := s.node(set), s.node(set)
	if _, ok := a.Peek(t.Context(), "k"); ok || src.loads.Load() != 0 {
		t.Fatalf("a look at nothing found something, or loaded %d times", src.loads.Load())
	}
	get(t, a, "k")
	for i, want := range []cache.Source{cache.HitL2, cache.HitL1} {
		if r, ok := b.Peek(t.Context(), "k"); !ok || r.Source != want {
			t.Errorf("look %d: %v %v, want %v", i, r.Source, ok, want)
		}
	}
	s.advance(90 * time.Second)
	if r, ok := b.Peek(t.Context(), "k"); !ok || r.Source != cache.Stale || r.Fresh >= 0 {
		t.Errorf("within the stale limit: %+v %v", r, ok)
	}
	s.advance(time.Minute)
	if r, ok := b.Peek(t.Context(), "k"); ok {
		t.Errorf("past the stale limit: %+v", r)
	}
	if n := src.loads.Load(); n != 1 {
		t.Errorf("%d loads, want the first only", n)
	}
}

// A refresh brings something newer than what is there, which may be fresh, and the fleet shares its load.
func TestRefreshLoadsAnewOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var loads atomic.Int64
	hold := make(chan struct{})
	set := func(o *options) {
		o.Load = func(context.Context, string) (cache.Loaded[string], error) {
			n := loads.Add(1)
			if n > 1 {
				<-hold
			}
			return cache.Loaded[string]{Value: fmt.Sprint(n)}, nil
		}
	}
	a, b := s.node(set), s.node(set)
	wants(t, get(t, a, "k"), "1", cache.Miss)
	wants(t, get(t, b, "k"), "1", cache.HitL2)
	done := make(chan string, 20)
	for i := range 20 {
		c := []*cache.Cache[string]{a, b}[i%2]
		go func() {
			r, err := c.Refresh(context.Background(), "k", func(context.Context, string) (cache.Loaded[string], error) {
				<-hold
				return cache.Loaded[string]{Value: fmt.Sprint(loads.Add(1))}, nil
			})
			done <- fmt.Sprint(r.Value, err)
		}()
	}
	eventually(t, "both to refresh", func() bool { return cache.Refreshing(a, "k") && cache.Refreshing(b, "k") })
	wants(t, get(t, b, "k"), "1", cache.HitL1) // readers do not wait
	close(hold)
	for range 20 {
		if got := <-done; got == "1<nil>" || !strings.HasSuffix(got, "<nil>") {
			t.Errorf("a refresh brought %s", got)
		}
	}
	// A call that comes behind the shared load begins another: at most one a process here.
	if n := loads.Load(); n > 3 {
		t.Errorf("%d loads", n)
	}
}

// The loader sees what its answer replaces, but nothing that was cleared.
func TestPriorIsWhatTheAnswerReplaces(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"with redis": false, "alone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			c := s.node(func(o *options) {
				if alone {
					o.Redis = nil
				}
				o.PhysicalTTL = time.Hour
				o.Load = func(ctx context.Context, _ string) (cache.Loaded[string], error) {
					v, ok := cache.Previous[string](ctx)
					return cache.Loaded[string]{Value: fmt.Sprint(v, ok)}, nil
				}
			})
			wants(t, get(t, c, "k"), "false", cache.Miss)
			s.advance(2 * time.Minute)
			wants(t, get(t, c, "k"), "falsetrue", cache.Miss)
			if err := c.Clear(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			wants(t, get(t, c, "k"), "false", cache.Miss)
		})
	}
}

// What the caller declares void is as good as cleared: in memory, in Redis, and in place of a failing source.
func TestInvalidValuesAreNeverServed(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	src := &source{}
	var void atomic.Bool
	set := func(o *options) {
		o.Load, o.StaleIfError = src.load, time.Hour
		o.Valid = func(_, v string) bool { return !void.Load() || !strings.HasSuffix(v, "@0") }
	}
	a, b := s.node(set), s.node(set)
	get(t, a, "k")
	get(t, b, "k")
	src.mu.Lock()
	src.err = errors.New("down")
	src.mu.Unlock()
	void.Store(true)
	for _, c := range []*cache.Cache[string]{a, b, s.node(set)} {
		if v, err := c.Get(t.Context(), "k"); err == nil {
			t.Errorf("served %q", v)
		}
		if r, ok := c.Peek(t.Context(), "k"); ok {
			t.Errorf("saw %+v", r)
		}
	}
	src.mu.Lock()
	src.err, src.version = nil, 1
	src.mu.Unlock()
	s.advance(2 * time.Minute) // past the backoff
	wants(t, get(t, a, "k"), "k@1", cache.Miss)
	wants(t, get(t, b, "k"), "k@1", cache.HitL2)
}

// Void while the load that fails is under way: the stale value does not come back.
func TestClearedUnderAFailingLoad(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var calls atomic.Int64
	begun, fail := make(chan struct{}), make(chan struct{})
	c := s.node(func(o *options) {
		o.StaleIfError = time.Hour
		o.Load = func(context.Context, string) (cache.Loaded[string], error) {
			if calls.Add(1) == 1 {
				return cache.Loaded[string]{Value: "old"}, nil
			}
			begun <- struct{}{}
			<-fail
			return cache.Loaded[string]{}, errors.New("down")
		}
	})
	get(t, c, "k")
	s.advance(2 * time.Minute)
	got := make(chan error, 1)
	go func() { _, err := c.Get(context.Background(), "k"); got <- err }()
	<-begun
	if err := c.Clear(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	close(fail)
	if err := <-got; err == nil {
		t.Error("a cleared value was served")
	}
}

// With weights, memory holds that much, not so many.
func TestWeightBoundsMemory(t *testing.T) {
	t.Parallel()
	src := &source{}
	s := newStand(t)
	c := s.node(func(o *options) {
		o.Load, o.L1Size, o.Weigh = src.load, 1000, func(string) uint32 { return 100 }
	})
	for i := range 200 {
		get(t, c, fmt.Sprint(i))
	}
	held := func() (n int) {
		for i := range 200 {
			if r, ok := c.Peek(t.Context(), fmt.Sprint(i)); ok && r.Source == cache.HitL1 {
				n++
			}
		}
		return n
	}
	eventually(t, "memory to be trimmed", func() bool { return held() <= 12 })
}

// PeekLocal tells what may be served without asking Redis, PeekStale what is there however stale; neither loads or refreshes.
func TestNearAndKept(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	src := &source{}
	make := func() *cache.Cache[string] {
		return s.node(func(o *options) {
			o.Load, o.TTL, o.L1TTL, o.StaleWhileRevalidate = src.load, 10*time.Second, 3*time.Second, time.Second
		})
	}
	c, other := make(), make()
	if _, ok := c.PeekLocal("k"); ok {
		t.Error("near before the load")
	}
	if _, ok := c.PeekStale(t.Context(), "k"); ok {
		t.Error("kept before the load")
	}
	get(t, c, "k")
	if r, ok := c.PeekLocal("k"); !ok || r.Value != "k@0" || r.Source != cache.HitL1 {
		t.Errorf("near is %+v, %v", r, ok)
	}
	if _, ok := other.PeekLocal("k"); ok {
		t.Error("near in a process that has not read it")
	}
	if r, ok := other.PeekStale(t.Context(), "k"); !ok || r.Value != "k@0" || r.Source != cache.HitL2 {
		t.Errorf("kept is %+v, %v", r, ok)
	}
	s.advance(4 * time.Second)
	if _, ok := c.PeekLocal("k"); ok {
		t.Error("near although Redis must be asked")
	}
	s.advance(10 * time.Second)
	if _, ok := c.Peek(t.Context(), "k"); ok {
		t.Error("it may not be served any more")
	}
	if r, ok := c.PeekStale(t.Context(), "k"); !ok || r.Value != "k@0" || r.Source != cache.Stale || r.Fresh >= 0 {
		t.Errorf("kept is %+v, %v", r, ok)
	}
	if err := other.Clear(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if _, ok := other.PeekStale(t.Context(), "k"); ok {
		t.Error("kept although it is cleared")
	}
	if n := src.loads.Load(); n != 1 {
		t.Errorf("%d loads", n)
	}
}
