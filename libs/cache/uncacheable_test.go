package cache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// 10,000 wait for what turns out not to be cacheable: all are released at once, none after another.
func TestWaitersOnAnUncacheableAnswerAreReleasedAtOnce(t *testing.T) {
	t.Parallel()
	const waiters = 10_000
	for name, private := range map[string]bool{"no store": false, "private": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			var calls, now atomic.Int64
			var begun sync.WaitGroup
			begun.Add(1)
			hold, all := make(chan struct{}), make(chan struct{})
			c := s.node(func(o *options) {
				o.Load = func(context.Context, string) (cache.Loaded[string], error) {
					n := calls.Add(1)
					if n == 1 {
						begun.Done()
						<-hold
					} else if now.Add(1) == waiters-1 {
						close(all) // every other waiter loads at this instant
					}
					if n > 1 {
						<-all
					}
					return cache.Loaded[string]{Value: fmt.Sprint("answer ", n), NoStore: true, Private: private}, nil
				}
			})
			var mu sync.Mutex
			answers := map[string]int{}
			done := make(chan struct{})
			go func() {
				defer close(done)
				readers(waiters, func(int) {
					r := get(t, c, "k")
					mu.Lock()
					defer mu.Unlock()
					answers[r.Value]++
				})
			}()
			begun.Wait()
			eventually(t, "all to wait", func() bool { return cache.Waiters(c, "k") == waiters })
			close(hold)
			await(t, done, "the waiters")
			want := 1 // all share the one answer
			if private {
				want = waiters // each has its own
			}
			if len(answers) != want || calls.Load() != int64(want) {
				t.Errorf("%d answers by %d loads, want %d", len(answers), calls.Load(), want)
			}
			for _, key := range s.mini.Keys() {
				if strings.HasSuffix(key, ":v") || strings.HasSuffix(key, ":l") {
					t.Errorf("%s is left", key)
				}
			}
		})
	}
}

// The memory of an uncacheable answer reaches other processes: they neither queue nor take the lock.
func TestUncacheableIsRememberedInTheFleet(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var calls atomic.Int64
	noStore := atomic.Bool{}
	noStore.Store(true)
	set := func(o *options) {
		o.Load = func(context.Context, string) (cache.Loaded[string], error) {
			return cache.Loaded[string]{Value: fmt.Sprint(calls.Add(1)), NoStore: noStore.Load()}, nil
		}
	}
	a, b := s.node(set), s.node(set)
	wants(t, get(t, a, "k"), "1", cache.Miss)
	wants(t, get(t, b, "k"), "2", cache.Miss)
	noStore.Store(false)
	wants(t, get(t, b, "k"), "3", cache.Miss)
	s.advance(11 * time.Second) // past UncacheableTTL
	wants(t, get(t, a, "k"), "4", cache.Miss)
	wants(t, get(t, b, "k"), "4", cache.HitL2)
}

func TestGetManyLoadsOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var mu sync.Mutex
	var batches [][]string
	set := func(o *options) {
		o.LoadMany = func(_ context.Context, keys []string) (map[string]cache.Loaded[string], error) {
			mu.Lock()
			defer mu.Unlock()
			batches = append(batches, slices.Clone(keys))
			out := map[string]cache.Loaded[string]{}
			for _, k := range keys {
				if k != "none" {
					out[k] = cache.Loaded[string]{Value: "v" + k}
				}
			}
			return out, nil
		}
	}
	a, b := s.node(set), s.node(set)
	ask := func(c *cache.Cache[string], keys ...string) map[string]string {
		t.Helper()
		got, err := c.GetMany(t.Context(), keys)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := ask(a, "2", "1", "none", "1"); !maps.Equal(got, map[string]string{"1": "v1", "2": "v2"}) {
		t.Errorf("got %v", got)
	}
	if got := ask(b, "1", "none", "3"); !maps.Equal(got, map[string]string{"1": "v1", "3": "v3"}) {
		t.Errorf("got %v", got)
	}
	if got := get(t, b, "4").Value; got != "v4" {
		t.Errorf("got %q", got)
	}
	if want := "[[1 2 none] [3] [4]]"; fmt.Sprint(batches) != want {
		t.Errorf("batches %v, want %s", batches, want)
	}
}

// Two batches that each lead what the other waits for end: a key that is loaded elsewhere leaves its batch.
func TestCrossedBatchesEnd(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var loads atomic.Int64
	set := func(o *options) {
		o.LoadMany = func(_ context.Context, keys []string) (map[string]cache.Loaded[string], error) {
			loads.Add(int64(len(keys)))
			out := map[string]cache.Loaded[string]{}
			for _, k := range keys {
				out[k] = cache.Loaded[string]{Value: k}
			}
			return out, nil
		}
	}
	nodes := []*cache.Cache[string]{s.node(set), s.node(set), s.node(set)}
	keys := make([]string, 40)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	readers(12, func(i int) {
		got, err := nodes[i%3].GetMany(context.Background(), keys)
		if err != nil || len(got) != len(keys) {
			t.Errorf("%d values, %v", len(got), err)
		}
	})
	if n := loads.Load(); n != int64(len(keys)) {
		t.Errorf("%d keys loaded, want %d", n, len(keys))
	}
}

func TestGetManyNamesTheKeysThatFail(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	down := errors.New("down")
	c := s.node(func(o *options) {
		o.Load = func(_ context.Context, key string) (cache.Loaded[string], error) {
			if key == "bad" {
				return cache.Loaded[string]{}, down
			}
			return cache.Loaded[string]{Value: key}, nil
		}
	})
	got, err := c.GetMany(t.Context(), []string{"a", "bad"})
	if !errors.Is(err, down) || !strings.Contains(err.Error(), `"bad"`) || got["a"] != "a" {
		t.Errorf("got %v, %v", got, err)
	}
}
