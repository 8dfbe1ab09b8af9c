package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// lead runs the load that this process holds the lock for. again says that the lock was lost to Redis's forgetting: the
// flight looks anew.
func (c *Cache[V]) lead(ctx context.Context, f *flight[V], a *answer, it *item[V]) (o outcome[V], again bool) {
	var fence atomic.Int64
	fence.Store(a.fence)
	stop := c.keepLock(ctx, f, &fence)
	defer stop()
	failures := 0
	if a.failure.kind == 'f' {
		failures = a.failure.count
	}
	for try := 1; ; try++ {
		c.markRead(f)
		v, took, err := c.load(ctx, f, it)
		if err != nil && (!errors.Is(err, ErrNotFound) || c.opts.NegativeTTL < 0) {
			return c.endFailed(ctx, f, fence.Load(), failures, it, err), false
		}
		if err == nil && (v.NoStore || v.Private || v.TTL < 0) {
			return c.endUnstored(ctx, f, fence.Load(), &v), false
		}
		e, encodeErr := c.envelope(&v, err != nil, c.delta(f.key, it, took))
		if encodeErr != nil {
			return c.endFailed(ctx, f, fence.Load(), failures, it, encodeErr), false
		}
		e.fence = fence.Load()
		asked := c.clock()
		status, newer, writeErr := c.l2.write(ctx, f.key, f.owner, &e)
		switch {
		case writeErr != nil:
			// Redis left while we loaded: the value is good for this process, in its own order.
			e.fence = 0
			return c.ledTo(f, &e, v.Value, asked, staleServeTime), false
		case status == writeStored:
			return c.ledTo(f, &e, v.Value, asked, c.opts.L1TTL), false
		case status == writeLost:
			c.metrics.lost.Inc()
			e.fence = 0
			return c.ledTo(f, &e, v.Value, asked, staleServeTime), true
		}
		// Invalidated while it loaded: what it read may be older than the change. The lock stays, so there is
		// still one load.
		c.metrics.superseded.Inc()
		if try == maxTries {
			// Invalidations come faster than loads end. Those who asked before the last one may have the value.
			_ = c.l2.fail(ctx, f.key, f.owner, failure{kind: 's', fence: newer}, c.opts.Lease)
			e.fence = 0
			o = c.ledTo(f, &e, v.Value, asked, 0)
			o.store = false
			return o, false
		}
		fence.Store(newer)
		it = nil // it may be cleared
	}
}

// maxTries bounds the loads of a run whose values are invalidated under its hands.
const maxTries = 4

// load asks the source; prior is what its answer will replace, nil where there is nothing.
func (c *Cache[V]) load(ctx context.Context, f *flight[V], previous *item[V]) (Loaded[V], time.Duration, error) {
	if f.load == nil {
		return Loaded[V]{}, 0, errNoLoader
	}
	return c.call(withPrevious(ctx, previous), f.key, f.load, true)
}

// delta is the new moving average of load times: on from the value's, which all processes share.
func (c *Cache[V]) delta(key string, it *item[V], took time.Duration) time.Duration {
	s := c.state(key)
	old := s.meanDelta()
	if it != nil {
		old = it.delta
	}
	s.loaded(took)
	return nextDelta(old, took)
}

// ledTo is a run's value as of now, to be confirmed by Redis after recheck.
func (c *Cache[V]) ledTo(f *flight[V], e *envelope, v V, now int64, recheck time.Duration) outcome[V] {
	it := c.item(f, e, now, now)
	it.value = v
	it.recheck = now + int64(recheck)
	return outcome[V]{it: &it, source: Miss, store: true, led: true}
}

// keepLock renews the lease until stop is called, which waits for the last renewal. A renewal that cannot be made is
// tried again: whether the lock is still ours is for write to find out.
func (c *Cache[V]) keepLock(ctx context.Context, f *flight[V], fence *atomic.Int64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(c.opts.Lease / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_, _ = c.l2.renew(ctx, f.key, f.owner, fence.Load())
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// endFailed ends a run that has no value: the record of it reaches those who wait elsewhere, and holds loads back from
// the second failure in a row on. An answer of the source (not found, uncached; a 403) holds nothing back and is not
// hidden by a stale value.
func (c *Cache[V]) endFailed(ctx context.Context, f *flight[V], fence int64, before int, it *item[V], err error) outcome[V] {
	r := failure{kind: 'f', fence: fence, count: before, text: errorText(err)}
	ttl := failureMemory
	answered := !c.isFailure(err)
	switch {
	case errors.Is(err, ErrNotFound):
		r.kind = 'n'
	case answered:
		r.kind = 'a'
	case errors.Is(err, ErrSourceDown), errors.Is(err, ErrClosed):
		// Says nothing new about the source.
	default:
		var delay time.Duration
		r.count, delay = c.state(f.key).failed(err, c.clock(), before)
		ttl += delay
	}
	// When Redis is down the lease ends the lock.
	_ = c.l2.fail(ctx, f.key, f.owner, r, ttl)
	var o outcome[V]
	if answered {
		o = failed[V](err)
	} else {
		o = c.staleOrError(f, it, err)
	}
	o.led = true
	return o
}

// endUnstored ends a run whose answer is not kept, and lets everyone know that there is nothing to wait for.
func (c *Cache[V]) endUnstored(ctx context.Context, f *flight[V], fence int64, v *Loaded[V]) outcome[V] {
	r := failure{kind: 'u', fence: fence}
	if v.Private {
		r.kind = 'p'
	}
	_ = c.l2.fail(ctx, f.key, f.owner, r, c.opts.UncacheableTTL)
	o := c.unstored(f, v.Value)
	o.led, o.private = true, v.Private
	return o
}

func (c *Cache[V]) unstored(f *flight[V], v V) outcome[V] {
	now := c.clock()
	return outcome[V]{it: &item[V]{value: v, gen: f.readAt.gen, written: now, expiry: now, stats: c.state(f.key)}, source: Miss}
}

// errorText is what other processes learn of an error.
func errorText(err error) string {
	const most = 256
	text := err.Error()
	if len(text) > most {
		text = text[:most]
	}
	return text
}
