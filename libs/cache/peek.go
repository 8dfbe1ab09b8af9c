package cache

import "context"

// Peek returns what may be served under key without a load: fresh, or stale within its limits. It waits for Redis at
// most, takes no lock and begins no refresh. ok is false where there is nothing.
func (c *Cache[V]) Peek(ctx context.Context, key string) (r Result[V], ok bool) {
	it, src := c.present(ctx, key)
	now := c.clock()
	switch {
	case it == nil || it.negative:
		return r, false
	case it.fresh(now):
		r, _ = c.serve(it, src, now)
	case it.revalidating(now), now < it.failing && it.withinStaleLimits(now):
		r, _ = c.serve(it, Stale, now)
	default:
		return r, false
	}
	return r, true
}

// PeekLocal is the fresh value that this process holds and may serve without asking Redis.
func (c *Cache[V]) PeekLocal(key string) (r Result[V], ok bool) {
	now := c.clock()
	it := c.peek(key)
	if it == nil || it.negative || now >= it.recheck || !it.fresh(now) {
		return r, false
	}
	r, _ = c.serve(it, HitL1, now)
	return r, true
}

// PeekStale is what is stored under key, however stale, for those who can tell whether it still holds, or whose reader has
// said that anything will do. It waits for Redis at most. ok is false where there is nothing, or nothing that may be used again.
func (c *Cache[V]) PeekStale(ctx context.Context, key string) (r Result[V], ok bool) {
	it, src := c.present(ctx, key)
	if it == nil || it.negative {
		return r, false
	}
	now := c.clock()
	if !it.fresh(now) {
		src = Stale
	}
	return it.result(src, now), true
}

// Refresh returns a value that was loaded after this call began, or by a load that was under way then. Calls that ask
// for one at the same time share the load, in the whole fleet. While loads fail it returns what may stand in, with Err.
func (c *Cache[V]) Refresh(ctx context.Context, key string, load Loader[V]) (Result[V], error) {
	w := request[V]{kind: refreshing, load: load}
	if it, _ := c.present(ctx, key); it != nil {
		w.seen = it.fence
	}
	return c.slow(ctx, key, w)
}

// present is the value there is and where it was found, fresh or not; nil where there is none.
func (c *Cache[V]) present(ctx context.Context, key string) (*item[V], Source) {
	if it := c.peek(key); it != nil && c.clock() < it.recheck {
		return it, HitL1
	}
	t, err := c.wait(ctx, key, request[V]{kind: peeking})
	if err != nil {
		return nil, 0
	}
	return t.f.out.it, t.f.out.source
}

// peekRemote resolves a flight that loads nothing.
func (c *Cache[V]) peekRemote(ctx context.Context, f *flight[V]) outcome[V] {
	c.markRead(f)
	if c.l2 == nil {
		return outcome[V]{it: c.peek(f.key), source: HitL1}
	}
	asked := c.clock()
	a, err := c.l2.get(ctx, f.key, f.owner, false, 0, 0)
	if err != nil {
		return outcome[V]{it: c.peekRedisDown(f), source: HitL1}
	}
	it := c.decode(f, &a, asked)
	if it == nil {
		return outcome[V]{}
	}
	return outcome[V]{it: &it.item, source: HitL2, store: it.fresh(it.now) || it.revalidating(it.now)}
}

type previousKey[V any] struct{}

// Previous is the value that a loader's answer will replace, fresh or not, for loaders that ask the source whether it has
// changed; ok is false where there is none, or none that may be used again. ctx is the loader's.
func Previous[V any](ctx context.Context) (v V, ok bool) {
	p, ok := ctx.Value(previousKey[V]{}).(*item[V])
	if !ok {
		return v, false
	}
	return p.value, true
}

// withPrior hands it to the loader.
func withPrevious[V any](ctx context.Context, it *item[V]) context.Context {
	if it == nil || it.negative {
		return ctx
	}
	return context.WithValue(ctx, previousKey[V]{}, it)
}
