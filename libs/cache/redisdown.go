package cache

import (
	"context"
	"errors"
	"time"
)

// redisDown resolves a flight that Redis did not answer, since began: what L1 holds goes on within RedisDownLimit and the stale
// limits; else, once it is sure that Redis is down and not one call lost, this process loads for itself. ok is false
// when the flight should ask again.
func (c *Cache[V]) redisDown(ctx context.Context, f *flight[V], err error, began time.Time) (o outcome[V], ok bool) {
	now := c.clock()
	if it := c.peek(f.key); it != nil && now < it.localUntil {
		kept := *it
		kept.recheck = min(now+int64(staleServeTime), it.localUntil)
		switch {
		case it.fresh(now):
			return outcome[V]{it: &kept, source: HitL1, store: true}, true
		case it.revalidating(now) && f.kind == reading:
			return outcome[V]{it: &kept, source: Stale, store: true}, true
		}
	}
	if unanswered(err) && c.l2.breaker.Closed() {
		c.l2.breaker.Waiting(began)
		if c.l2.breaker.Closed() {
			if err := c.pause(ctx, f, 0, 0); err != nil {
				return c.staleOrError(f, nil, err), true
			}
			return o, false
		}
	}
	c.metrics.redisUp.Set(0)
	return c.unlocked(ctx, f), true
}

// unlockedRun is a load without a lock. A key has one at a time in this process, its read and its refresh flight together.
type unlockedRun[V any] struct {
	done chan struct{}
	out  outcome[V]
	old  bool // the key was invalidated since it began; guarded by the shard
	gen  uint64
}

// unlocked loads without the fleet: Redis is down or not used at all.
func (c *Cache[V]) unlocked(ctx context.Context, f *flight[V]) outcome[V] {
	for {
		c.markRead(f)
		run, mine := c.unlockedRun(f.key)
		if mine {
			run.out = c.loadUnlocked(ctx, f)
			c.endUnlocked(f.key, run)
			return run.out
		}
		select {
		case <-run.done:
		case <-ctx.Done():
			return c.staleOrError(f, nil, c.endOf(ctx))
		}
		if !c.outdated(f, run) {
			return joined(f, run.out)
		}
	}
}

func (c *Cache[V]) unlockedRun(key string) (run *unlockedRun[V], mine bool) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if run = s.unlocked[key]; run != nil {
		return run, false
	}
	run = &unlockedRun[V]{done: make(chan struct{}), gen: c.gen.Load()}
	s.unlocked[key] = run
	return run, true
}

func (c *Cache[V]) endUnlocked(key string, run *unlockedRun[V]) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unlocked, key)
	close(run.done)
}

// outdated reports whether the run began before an invalidation that f's callers may have asked after.
func (c *Cache[V]) outdated(f *flight[V], run *unlockedRun[V]) bool {
	s := c.shard(f.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return run.old || run.gen < f.readAt.gen
}

// joined is another flight's outcome: its load was not ours.
func joined[V any](f *flight[V], o outcome[V]) outcome[V] {
	o.led, o.waited = false, true
	if o.source == Miss {
		o.source = Coalesced
	}
	if o.private {
		return outcome[V]{recentlyPrivate: true}
	}
	if o.it != nil {
		own := *o.it
		own.gen = f.readAt.gen
		o.it = &own
	}
	return o
}

func (c *Cache[V]) loadUnlocked(ctx context.Context, f *flight[V]) outcome[V] {
	state := c.state(f.key)
	if err := state.holdsBack(c.clock()); err != nil {
		return c.staleOrError(f, c.peekRedisDown(f), errors.Join(ErrBackingOff, err))
	}
	if c.l2 != nil {
		select {
		case c.slots <- struct{}{}:
			defer func() { <-c.slots }()
		case <-ctx.Done():
			return c.staleOrError(f, c.peekRedisDown(f), c.endOf(ctx))
		}
	}
	c.markRead(f)
	v, took, err := c.load(ctx, f, c.peekRedisDown(f))
	if err != nil && (!errors.Is(err, ErrNotFound) || c.opts.NegativeTTL < 0) {
		return c.failedUnlocked(f, err)
	}
	if err == nil && (v.NoStore || v.Private || v.TTL < 0) {
		o := c.unstored(f, v.Value)
		o.led, o.private = true, v.Private
		return o
	}
	e, encodeErr := c.envelope(&v, err != nil, c.delta(f.key, c.peek(f.key), took))
	if encodeErr != nil {
		return c.failedUnlocked(f, encodeErr)
	}
	if c.l2 != nil {
		return c.ledTo(f, &e, v.Value, c.clock(), staleServeTime)
	}
	return c.ledTo(f, &e, v.Value, c.clock(), e.physical)
}

func (c *Cache[V]) failedUnlocked(f *flight[V], err error) outcome[V] {
	if !c.isFailure(err) {
		return outcome[V]{err: err, led: true}
	}
	if !errors.Is(err, ErrSourceDown) && !errors.Is(err, ErrClosed) {
		c.state(f.key).failed(err, c.clock(), 0)
	}
	o := c.staleOrError(f, c.peekRedisDown(f), err)
	o.led = true
	return o
}

// peekRedisDown is L1's value while nobody can confirm it.
func (c *Cache[V]) peekRedisDown(f *flight[V]) *item[V] {
	it := c.peek(f.key)
	if it == nil || c.l2 != nil && c.clock() >= it.localUntil {
		return nil
	}
	return it
}

// uncacheable resolves a flight for a key whose answers are not kept: no lock, no queue in the fleet.
func (c *Cache[V]) uncacheable(ctx context.Context, f *flight[V], private bool) outcome[V] {
	if private {
		return outcome[V]{recentlyPrivate: true}
	}
	if f.load == nil {
		return failed[V](errNoLoader)
	}
	v, _, err := c.call(ctx, f.key, f.load, false)
	if err != nil {
		if !c.isFailure(err) {
			return failed[V](err)
		}
		return c.staleOrError(f, nil, err)
	}
	o := c.unstored(f, v.Value)
	o.private = v.Private
	return o
}
