package cache

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/cache/xfetch"
)

// resolve finds the value for a flight: in Redis; from the run that holds the lock; by a run of its own.
func (c *Cache[V]) resolve(ctx context.Context, f *flight[V]) outcome[V] {
	if f.kind == peeking {
		return c.peekRemote(ctx, f)
	}
	if c.l2 == nil {
		return c.unlocked(ctx, f)
	}
	// A read looks first and takes the lock only when nothing it sees may be served.
	take, seen, want := f.kind == refreshing, f.seen, int64(0)
	began := time.Now() // of what Redis has not answered
	for polls := 0; ; polls++ {
		c.markRead(f)
		asked := c.clock()
		a, err := c.l2.get(ctx, f.key, f.owner, take, seen, want)
		if err != nil {
			if o, ok := c.redisDown(ctx, f, err, began); ok {
				return o
			}
			continue
		}
		began = time.Now()
		c.metrics.redisUp.Set(1)
		it := c.decode(f, &a, asked)
		if f.kind == reading && it != nil && it.revalidating(it.now) && a.status != statusLeader {
			return c.found(&it.item, it.now, want > 0)
		}
		switch a.status {
		case statusValue:
			if it != nil && (want > 0 || it.fresh(it.now)) {
				return c.found(&it.item, it.now, want > 0)
			}
			// Unreadable, or invalidated to our knowledge: as good as absent.
			seen, take = a.fence, true
		case statusUncacheable:
			return c.uncacheable(ctx, f, a.failure.kind == 'p')
		case statusFailed:
			if a.failure.kind == 's' { // ended by invalidations: whoever leads next
				want = 0
				continue
			}
			return c.remoteFailure(f, it.plain(), a.failure, want > 0)
		case statusLeader:
			o, again := c.lead(ctx, f, &a, it.plain())
			if !again || polls >= maxTries {
				return o
			}
		case statusLocked:
			if want == 0 {
				want = a.fence
			}
			take = true
			if err := c.pause(ctx, f, polls, a.lockFor); err != nil {
				return c.staleOrError(f, it.plain(), err)
			}
		default:
			take = true
		}
	}
}

// stored is an item and when it was looked at.
type stored[V any] struct {
	item[V]
	now int64
}

func (l *stored[V]) plain() *item[V] {
	if l == nil {
		return nil
	}
	return &l.item
}

// found is a value that Redis held, fresh or revalidating; waited when it is another process's answer to this flight.
func (c *Cache[V]) found(it *item[V], now int64, waited bool) outcome[V] {
	o := outcome[V]{it: it, source: HitL2, store: true, waited: waited}
	switch {
	case waited:
		o.source = Coalesced
	case !it.fresh(now):
		o.source = Stale
	}
	return o
}

// decode is the value that Redis holds, nil when there is none that may ever be served.
//
// Redis answered some time after it was asked. All that follows counts from asked, so that the answer's way back makes
// nothing younger.
func (c *Cache[V]) decode(f *flight[V], a *answer, asked int64) *stored[V] {
	if a.value == "" {
		return nil
	}
	e, err := decodeEnvelope(a.value)
	if err != nil {
		return nil
	}
	age := max(0, e.physical-a.left)
	it := &stored[V]{item: c.item(f, &e, asked-int64(age), asked), now: c.clock()}
	if !e.negative {
		if it.value, err = c.opts.Codec.Decode(e.payload); err != nil {
			return nil
		}
	}
	if !c.valid(f.key, &it.item) {
		return nil
	}
	if b := a.barrier; b.fence >= e.fence {
		if b.hard {
			return nil
		}
		it.expiry = min(it.expiry, asked-(a.now-b.since)*int64(time.Microsecond))
	}
	if b, ok := c.barriers.GetIfPresent(f.key); ok && b.fence >= e.fence {
		if b.hard {
			return nil
		}
		it.expiry = min(it.expiry, b.at)
	}
	return it
}

// item is e in this process, without its value; now is when Redis was asked.
func (c *Cache[V]) item(f *flight[V], e *envelope, written, now int64) item[V] {
	it := item[V]{
		negative: e.negative, fence: e.fence, gen: f.readAt.gen, written: written, expiry: written + int64(e.logical),
		swr: int64(e.swr), sie: int64(e.sie), delta: e.delta, stats: c.state(f.key),
		recheck: now + int64(c.opts.L1TTL), localUntil: now + int64(c.opts.RedisDownLimit),
	}
	if c.opts.Beta > 0 {
		it.window = int64(float64(e.delta) * c.opts.Beta * xfetch.MaxDraw)
	}
	return it
}

// remoteFailure is how a flight ends that met the failure of a run elsewhere: as one of its waiters, or held back.
func (c *Cache[V]) remoteFailure(f *flight[V], it *item[V], r failure, waited bool) outcome[V] {
	var err error = &RemoteError{Text: r.text}
	switch {
	case r.kind == 'n':
		return outcome[V]{err: ErrNotFound, waited: waited}
	case r.kind == 'a':
		return outcome[V]{err: err, waited: waited}
	case !waited:
		err = fmt.Errorf("%w: %w", ErrBackingOff, err)
	}
	o := c.staleOrError(f, it, err)
	o.waited = waited
	return o
}

// staleServeTime is how long a stale value is served without another look at what it stands in for.
const staleServeTime = 250 * time.Millisecond

// staleOrError is what is served when there is no load to be had: the stale value within its limits, the fallback, the error.
func (c *Cache[V]) staleOrError(f *flight[V], it *item[V], err error) outcome[V] {
	now := c.clock()
	if it == nil && c.usableRedisDown(f, now) {
		it = c.peek(f.key)
	}
	if it != nil && !it.negative && it.withinStaleLimits(now) && c.notCleared(f.key, it) {
		marked, src := *it, HitL2
		marked.gen, marked.failing = f.readAt.gen, now+int64(staleServeTime)
		marked.recheck = max(it.recheck, min(marked.failing, it.localUntil))
		if !it.fresh(now) {
			marked.err, src = err, Stale
		}
		return outcome[V]{it: &marked, source: src, store: true}
	}
	if c.opts.Fallback != nil {
		if v, ok := c.opts.Fallback(f.key); ok {
			return outcome[V]{it: &item[V]{value: v, gen: f.readAt.gen, written: now, expiry: now, err: err, stats: c.state(f.key)}, source: Fallback}
		}
	}
	return failed[V](err)
}

// notCleared reports whether nobody cleared the value while the load that failed was under way.
func (c *Cache[V]) notCleared(key string, it *item[V]) bool {
	b, ok := c.barriers.GetIfPresent(key)
	return c.valid(key, it) && !(ok && b.hard && b.fence >= it.fence)
}

// usableRedisDown reports whether L1 may stand in although Redis has not confirmed it: only while Redis is down. When Redis
// answers and holds nothing, what L1 holds may be cleared.
func (c *Cache[V]) usableRedisDown(f *flight[V], now int64) bool {
	it := c.peek(f.key)
	return it != nil && now < it.localUntil && (c.l2 == nil || !c.l2.breaker.Closed())
}
