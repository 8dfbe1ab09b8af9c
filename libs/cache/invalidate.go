package cache

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Invalidate says that the source has changed: no value that was loaded, or began to load, before now is fresh any more
// in the fleet. What is there may be served within the stale limits, counted from now. Nothing is loaded until
// somebody asks. When it returns, this process has forgotten the value, others do within the time of a message, at most
// within L1TTL. On ErrUnavailable repeat it.
func (c *Cache[V]) Invalidate(ctx context.Context, key string) error {
	return c.invalidate(ctx, key, false)
}

// Clear is Invalidate for values that must never be served again, whatever the source does: no stale limit applies.
func (c *Cache[V]) Clear(ctx context.Context, key string) error {
	return c.invalidate(ctx, key, true)
}

func (c *Cache[V]) invalidate(ctx context.Context, key string, hard bool) error {
	if c.l2 == nil {
		c.apply(key, invalidation{hard: hard})
		return nil
	}
	// The barrier outlives every run that may be loading and every value that it makes stale.
	ttl := max(2*c.opts.TTL, c.opts.PhysicalTTL, c.opts.WaitTimeout) + c.opts.Lease
	fence, err := c.l2.invalidate(ctx, key, hard, ttl)
	if err != nil {
		// At least this process does not go on with it.
		c.apply(key, invalidation{hard: hard})
		return fmt.Errorf("invalidate: %w", errors.Join(ErrUnavailable, err))
	}
	c.apply(key, invalidation{fence: fence, hard: hard, mine: true})
	return nil
}

// apply forgets what this process holds that is older than the invalidation; fence 0 is younger than everything.
func (c *Cache[V]) apply(key string, b invalidation) {
	now, fence, hard := c.clock(), b.fence, b.hard
	if fence > 0 {
		b.at = now
		if old, ok := c.barriers.GetIfPresent(key); ok && old.fence == fence {
			b.mine, b.back = b.mine || old.mine, b.back || old.back // our own message comes back
		}
		c.barriers.Set(key, b)
	}
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, flights := range s.flights {
		if f := flights[key]; f != nil {
			f.invalidations.messages++
			f.barrier = max(f.barrier, fence)
		}
	}
	if run := s.unlocked[key]; run != nil {
		run.old = true
	}
	if c.l1 == nil {
		return
	}
	it, ok := c.l1.GetIfPresent(key)
	switch {
	case !ok || fence > 0 && it.fence > fence:
	case !hard && c.l2 == nil:
		// There is no copy elsewhere to serve within the stale limits.
		stale := *it
		stale.expiry = min(it.expiry, now)
		c.l1.Set(key, &stale)
	default:
		c.l1.Invalidate(key)
	}
}

// forget voids all of L1: invalidations may have been missed. The values are asked of Redis again as they are read.
func (c *Cache[V]) forget() {
	c.gen.Add(1)
	c.metrics.drops.Inc()
}

// reissueFor is how far back a Redis that failed over may have forgotten.
const reissueFor = time.Minute

// reissue repeats this process's late invalidations: all of them on a Redis that has forgotten some, else those whose
// message never came back. Such a one may have died with a master before the epoch told of it here, so that the epoch
// of the next one looks complete; to repeat it costs a load at most.
func (c *Cache[V]) reissue(ctx context.Context, all bool) error {
	since := c.clock() - int64(reissueFor)
	for key, b := range c.barriers.All() {
		if !b.mine || b.at < since || b.back && !all {
			continue
		}
		if err := c.invalidate(ctx, key, b.hard); err != nil {
			return err
		}
	}
	return nil
}
