package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// GetMany returns the values under keys; those the source does not have are missing in the map. The keys that this call
// leads are loaded by one call of LoadMany; those that others load are waited for. The error joins the failures of
// single keys, each naming its key; the map then holds the others.
func (c *Cache[V]) GetMany(ctx context.Context, keys []string) (map[string]V, error) {
	values := make(map[string]V, len(keys))
	var missing []string
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		r, ok, err := c.fast(ctx, key, c.opts.Load)
		switch {
		case !ok:
			missing = append(missing, key)
		case err == nil:
			values[key] = r.Value
		}
	}
	if len(missing) == 0 {
		return values, nil
	}
	return values, c.fetchMany(ctx, missing, values)
}

// fetchMany adds the values of keys that are not in L1.
func (c *Cache[V]) fetchMany(ctx context.Context, keys []string, values map[string]V) error {
	var (
		b    = &batch[V]{pending: len(keys), ready: make(chan struct{})}
		mu   sync.Mutex
		errs []error
		wg   sync.WaitGroup
	)
	for _, key := range keys {
		wg.Go(func() {
			r, err := c.fetchMember(ctx, b, key)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				values[key] = r.Value
			case !errors.Is(err, ErrNotFound):
				errs = append(errs, fmt.Errorf("key %q: %w", key, err))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fetchMember reads one key of a batch.
func (c *Cache[V]) fetchMember(ctx context.Context, b *batch[V], key string) (Result[V], error) {
	m := &member[V]{batch: b, cache: c, key: key}
	if c.opts.LoadMany == nil {
		return c.slow(ctx, key, wish[V]{load: c.opts.Load})
	}
	defer m.leave()
	return c.slow(ctx, key, wish[V]{load: m.load, batch: m})
}

// batch gathers the keys whose flights lead, until every member has either asked for its load or left; then it calls
// the source once.
type batch[V any] struct {
	mu      sync.Mutex
	pending int
	keys    []string
	ctx     context.Context // of the first that asked
	ready   chan struct{}   // closed when out and err are set
	out     map[string]Loaded[V]
	err     error
}

// member is one key's part in a batch. It is heard once.
type member[V any] struct {
	batch *batch[V]
	cache *Cache[V]
	key   string

	once sync.Once
}

// leave lets the batch go on without this key: its flight has ended, or waits for another's load.
func (m *member[V]) leave() {
	if m != nil {
		m.once.Do(func() { m.batch.heard(m.cache) })
	}
}

// load is the Loader of the member's flight. The first call waits for the batch; a retry, and a call after it left,
// loads the key alone.
func (m *member[V]) load(ctx context.Context, key string) (Loaded[V], error) {
	first := false
	m.once.Do(func() {
		first = true
		m.batch.ask(ctx, m.key)
		m.batch.heard(m.cache)
	})
	if !first {
		return single(m.cache.opts.LoadMany)(ctx, key)
	}
	select {
	case <-m.batch.ready:
		return pick(m.batch.out, m.batch.err, key)
	case <-ctx.Done():
		return Loaded[V]{}, context.Cause(ctx)
	}
}

// ask puts a key into the batch.
func (b *batch[V]) ask(ctx context.Context, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys = append(b.keys, key)
	if b.ctx == nil {
		b.ctx = ctx
	}
}

// heard counts a member that has asked or left. The last one starts the load, whose end the members' loads await.
func (b *batch[V]) heard(c *Cache[V]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending--; b.pending == 0 && len(b.keys) > 0 {
		go b.run(c)
	}
}

func (b *batch[V]) run(c *Cache[V]) {
	defer close(b.ready)
	b.err = &PanicError{Value: "the batch loader ended its goroutine"}
	defer func() {
		if p := recover(); p != nil {
			b.err = &PanicError{Value: p}
		}
	}()
	slices.Sort(b.keys)
	b.out, b.err = c.opts.LoadMany(b.ctx, b.keys)
}

// single makes a Loader of a BatchLoader.
func single[V any](many BatchLoader[V]) Loader[V] {
	return func(ctx context.Context, key string) (Loaded[V], error) {
		out, err := many(ctx, []string{key})
		return pick(out, err, key)
	}
}

func pick[V any](out map[string]Loaded[V], err error, key string) (Loaded[V], error) {
	if err != nil {
		return Loaded[V]{}, err
	}
	v, ok := out[key]
	if !ok {
		return Loaded[V]{}, ErrNotFound
	}
	return v, nil
}
