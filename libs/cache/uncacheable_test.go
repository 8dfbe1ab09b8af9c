package cache_test

import (
	"context"
	"fmt"
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
