package cache

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/breaker"
	"github.com/sluice-platform/sluice/libs/cache/xfetch"
)

// Cache is one family of values: in this process, in Redis, at the source. It is safe for concurrent use. Values are
// shared between callers, who must not change them.
type Cache[V any] struct {
	opts   Options[V]
	l1     *otter.Cache[string, *item[V]] // nil: none
	l2     *l2                            // nil: none
	states *otter.Cache[string, *keyState]
	// barriers are invalidations heard of late: a Redis that failed over may have forgotten them.
	barriers *otter.Cache[string, invalidation]
	metrics  *familyMetrics
	source   *breaker.Breaker
	beat     *breaker.Heartbeat // Run's; its own stalls are not Redis's silence
	budget   retryBudget
	slots    chan struct{} // loads without a lock

	seed         maphash.Seed
	shards       [shardCount]shard[V]
	gen          atomic.Uint64 // of L1: items of earlier generations are void
	subscription subscriptionState
	// listening is true while invalidations are heard.
	listening atomic.Bool

	start time.Time
	// realTime spares the hot path the wall clock, a third of its time.
	realTime bool
	base     context.Context // of all loads; ends with the Cache
	stop     context.CancelFunc
	mu       sync.RWMutex // guards closed against late loads
	closed   bool
	owned    sync.WaitGroup // flights
}

type invalidation struct {
	fence, at int64
	hard      bool
	mine      bool // this process issued it
	back      bool // its message was heard
}

// New checks the options. It starts nothing: Run listens for invalidations and wake-ups; without it, L1's values are
// at most L1TTL behind and waiters poll.
func New[V any](o Options[V]) (*Cache[V], error) {
	realTime := o.Now == nil
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cache[V]{
		opts: o, metrics: o.Metrics.family(o.Family), seed: maphash.MakeSeed(), start: o.Now(), realTime: realTime,
		source: breaker.New(breaker.Options{Errors: o.BreakerFailures, Silence: math.MaxInt64, ProbeEvery: o.BreakerProbe, Now: o.Now}),
		beat:   breaker.NewHeartbeat(beatEvery, nil),
		slots:  make(chan struct{}, o.MaxLoadsRedisDown),
		budget: retryBudget{ratio: o.RetryRatio, tokens: retryReserve},
	}
	c.base, c.stop = context.WithCancel(context.Background())
	for i := range c.shards {
		c.shards[i].init()
	}
	if err := c.memories(); err != nil {
		c.stop()
		return nil, fmt.Errorf("cache: new: %w", err)
	}
	if o.Redis != nil {
		c.metrics.redisUp.Set(1) // until it fails
		c.l2 = newL2(o.Redis, o.Prefix+o.Family+":", o.RedisTimeout, o.Lease, c.beat)
	}
	return c, nil
}

// beatEvery finds stalls that matter beside a Redis time-out.
const beatEvery = 10 * time.Millisecond

// rememberedKeys is how many keys' rates and failures a process knows at least; some 200 bytes each.
const rememberedKeys = 4096

func (c *Cache[V]) remembered() int {
	if c.opts.Weigh != nil {
		return 4 * rememberedKeys
	}
	return max(rememberedKeys, 8*c.opts.L1Size)
}

func (c *Cache[V]) memories() (err error) {
	if c.opts.L1Size > 0 {
		o := &otter.Options[string, *item[V]]{MaximumSize: c.opts.L1Size}
		if weigh := c.opts.Weigh; weigh != nil {
			o.MaximumSize, o.MaximumWeight = 0, uint64(c.opts.L1Size)
			o.Weigher = func(_ string, it *item[V]) uint32 { return max(1, weigh(it.value)) }
		}
		if c.l1, err = otter.New(o); err != nil {
			return err
		}
	}
	if c.states, err = otter.New(&otter.Options[string, *keyState]{MaximumSize: c.remembered()}); err != nil {
		return err
	}
	c.barriers, err = otter.New(&otter.Options[string, invalidation]{MaximumSize: rememberedKeys})
	return err
}

// Get returns the value under key: from memory, from Redis, or from the source, which the whole fleet asks once.
// ErrNotFound says that the source has none. When ctx ends the call does, but no load that it began.
func (c *Cache[V]) Get(ctx context.Context, key string) (V, error) {
	r, err := c.fetch(ctx, key, c.opts.Load)
	return r.Value, err
}

// Fetch is Get with what is known about the value.
func (c *Cache[V]) Fetch(ctx context.Context, key string) (Result[V], error) {
	return c.fetch(ctx, key, c.opts.Load)
}

// FetchWith is Fetch with a loader of the call's own, used if this call begins the run. Loaders of one key must be
// equivalent, but for Private answers.
func (c *Cache[V]) FetchWith(ctx context.Context, key string, load Loader[V]) (Result[V], error) {
	return c.fetch(ctx, key, load)
}

func (c *Cache[V]) fetch(ctx context.Context, key string, load Loader[V]) (Result[V], error) {
	if r, ok, err := c.fast(ctx, key, load); ok {
		return r, err
	}
	return c.slow(ctx, key, request[V]{load: load})
}

// fast serves what this process may serve without asking anyone; ok is false when it has to ask.
func (c *Cache[V]) fast(ctx context.Context, key string, load Loader[V]) (r Result[V], ok bool, err error) {
	it := c.peek(key)
	if it == nil {
		return r, false, nil
	}
	now := c.clock()
	src := Stale
	switch {
	case now >= it.recheck:
		return r, false, nil
	case it.fresh(now):
		src = HitL1
		if left := it.expiry - now; left < it.window && c.refreshesEarly(it, left) {
			c.refresh(ctx, key, it, load)
		}
	case it.revalidating(now):
		c.refresh(ctx, key, it, load)
	case now < it.failing && it.withinStaleLimits(now):
	default:
		return r, false, nil
	}
	r, err = c.serve(it, src, now)
	return r, true, err
}

// peek is the L1 value that no missed invalidation has made void.
func (c *Cache[V]) peek(key string) *item[V] {
	if c.l1 == nil {
		return nil
	}
	it, ok := c.l1.GetIfPresent(key)
	if !ok || it.gen != c.gen.Load() || !c.valid(key, it) {
		return nil
	}
	return it
}

// valid asks Options.Valid.
func (c *Cache[V]) valid(key string, it *item[V]) bool {
	return c.opts.Valid == nil || it.negative || c.opts.Valid(key, it.value)
}

func (c *Cache[V]) serve(it *item[V], src Source, now int64) (Result[V], error) {
	it.stats.reads.Add(1)
	c.metrics.bySource[src].Inc()
	if src == Stale && it.nearLimit(now) {
		c.metrics.nearLimit.Inc()
	}
	if it.negative {
		return Result[V]{Source: src, Age: time.Duration(now - it.written), Fresh: time.Duration(it.expiry - now)}, ErrNotFound
	}
	return it.result(src, now), nil
}

// refreshesEarly is XFetch's draw for one reader.
func (c *Cache[V]) refreshesEarly(it *item[V], left int64) bool {
	return xfetch.Early(time.Duration(left), it.delta, c.opts.Beta, 1-c.opts.Random())
}

// clock is nanoseconds since New, monotonic with the real clock.
func (c *Cache[V]) clock() int64 {
	if c.realTime {
		return int64(time.Since(c.start))
	}
	return int64(c.opts.Now().Sub(c.start))
}

func (c *Cache[V]) state(key string) *keyState {
	if s, ok := c.states.GetIfPresent(key); ok {
		return s
	}
	s := &keyState{windowStart: c.clock(), backoff: backoff.Backoff{Min: c.opts.BackoffMin, Max: c.opts.BackoffMax}}
	if old, set := c.states.SetIfAbsent(key, s); !set {
		return old
	}
	return s
}

// begin registers a flight's goroutine with the Cache, which waits for it; false when it has ended.
func (c *Cache[V]) begin() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return false
	}
	c.owned.Add(1)
	return true
}

// end cancels all loads and waits for the flights; a loader that ignores its context is left behind.
func (c *Cache[V]) end() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.owned.Wait()
}
