//go:build integration

package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// chaos is a source of some keys, and the history of their changes.
type chaos struct {
	mu       sync.Mutex
	versions map[string]int64
	over     map[string][]ending
	loads    atomic.Int64
}

// ending is an invalidation that has returned, and in which process.
type ending struct {
	version int64
	at      time.Time
	by      int
}

var errChaos = errors.New("by chance")

// load takes up to 3 ms, reads at its start, and fails at times.
func (c *chaos) load(ctx context.Context, key string) (cache.Loaded[string], error) {
	c.loads.Add(1)
	c.mu.Lock()
	version := c.versions[key]
	c.mu.Unlock()
	select {
	case <-time.After(time.Duration(rand.N(3000)) * time.Microsecond):
	case <-ctx.Done():
		return cache.Loaded[string]{}, ctx.Err()
	}
	if rand.N(20) == 0 {
		return cache.Loaded[string]{}, errChaos
	}
	return cache.Loaded[string]{Value: strconv.FormatInt(version, 10)}, nil
}

func (c *chaos) change(key string) (version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions[key]++
	return c.versions[key]
}

func (c *chaos) ended(key string, version int64, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over[key] = append(c.over[key], ending{version, time.Now(), by})
}

// least is the oldest version that process p may return to a read that began then: its own invalidations bind it at
// once, those of others after bound.
func (c *chaos) least(key string, p int, began time.Time, bound time.Duration) (version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.over[key] {
		if e.by == p && e.at.Before(began) || e.at.Before(began.Add(-bound)) {
			version = max(version, e.version)
		}
	}
	return version
}

// Random reads, changes, soft and hard invalidations, failing loads and lost locks in several processes at once: no
// read returns what was invalidated before it began, beyond the bound; versions only grow for one who reads his writes.
func TestRandomRunsHaveNoStaleRead(t *testing.T) {
	t.Parallel()
	const processes, keys, l1TTL = 4, 3, 40 * time.Millisecond
	addr, prefix := servertest.Redis(t)
	ch := &chaos{versions: map[string]int64{}, over: map[string][]ending{}}
	var nodes []*cache.Cache[string]
	for range processes {
		o := quick(client(t, addr))
		o.Prefix, o.Load, o.L1TTL, o.RedisDownLimit, o.TTL = prefix, ch.load, l1TTL, l1TTL, 200*time.Millisecond
		o.BackoffMin, o.BackoffMax, o.BreakerFailures = time.Millisecond, 2*time.Millisecond, 1e6
		nodes = append(nodes, listening(t, running(t, o), o))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var reads, changes, stolen atomic.Int64
	key := func() string { return fmt.Sprint("k", rand.N(keys)) }
	for p, node := range nodes {
		for range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					k, began := key(), time.Now()
					r, err := node.Fetch(ctx, k)
					if err != nil {
						if errors.Is(err, cache.ErrNotFound) {
							t.Error("a failure looks like absence")
						}
						continue
					}
					reads.Add(1)
					got, _ := strconv.ParseInt(r.Value, 10, 64)
					if least := ch.least(k, p, began, l1TTL); got < least {
						t.Errorf("process %d read version %d of %s from %s, after %d", p, got, k, r.Source, least)
						cancel()
					}
				}
			})
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				k := key()
				version := ch.change(k)
				invalidate := node.Invalidate
				if rand.N(2) == 0 {
					invalidate = node.Clear
				}
				if invalidate(context.WithoutCancel(ctx), k) == nil {
					ch.ended(k, version, p)
					changes.Add(1)
				}
				select {
				case <-time.After(time.Duration(rand.N(30)) * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	// Leaders lose their locks, as to a lease that ended while they stood still.
	rdb := client(t, addr)
	wg.Go(func() {
		for ctx.Err() == nil {
			stolen.Add(rdb.Del(ctx, prefix+"test:{"+key()+"}:l").Val())
			select {
			case <-time.After(time.Duration(rand.N(5)) * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	least := time.After(4 * time.Second)
	eventually(t, "enough to happen", func() bool {
		return ctx.Err() != nil || reads.Load() >= 1000 && changes.Load() >= 50 && stolen.Load() >= 5
	})
	select {
	case <-least:
	case <-ctx.Done():
	}
	cancel()
	wg.Wait()
	t.Logf("%d reads, %d changes, %d loads, %d locks lost", reads.Load(), changes.Load(), ch.loads.Load(), stolen.Load())
}
