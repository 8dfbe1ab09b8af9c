package cache

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// flight is one run for one key in this process: a look into Redis, perhaps a load or the wait for another process's.
// Its goroutine belongs to the Cache and not to a caller, so that no caller's end is the run's.
type flight[V any] struct {
	key     string
	load    Loader[V]
	seen    int64 // a refresh wants something newer than this run; 0 is a read
	refresh bool
	wake    chan struct{}
	done    chan struct{}
	out     outcome[V] // after done
	batch   *member[V] // of the GetMany that began it; nil is none

	// Guarded by the shard.
	waiters int
	paused  bool  // it waits for another process
	barrier int64 // the newest invalidation heard while it flew
	cleared int64 // the newest hard one
	dirty   bool  // one was heard since this attempt began
	gen     uint64
}

// outcome is how a flight ended.
type outcome[V any] struct {
	it     *item[V] // nil with err, and where everybody loads alone
	source Source   // of the caller that began it
	err    error
	store  bool // it may go to L1
	led    bool // this process loaded
	waited bool // another one did
	alone  bool // private: only the caller that began the flight may have it
	nobody bool // private of late: everybody loads alone
}

// after is o, found by another attempt of the flight that had found earlier: a load that was made stays this flight's.
func (o outcome[V]) after(earlier outcome[V]) outcome[V] {
	if earlier.led || earlier.waited {
		o.led, o.waited = o.led || earlier.led, o.waited || earlier.waited
		if o.source == HitL2 || o.source == Coalesced {
			o.source = earlier.source
		}
	}
	return o
}

func failed[V any](err error) outcome[V] { return outcome[V]{err: err} }

const shardCount = 64

// shard holds the flights of some keys; reads and refreshes apart, so that a reader never waits for a refresh while
// Redis has something usable.
type shard[V any] struct {
	mu        sync.Mutex
	reads     map[string]*flight[V]
	refreshes map[string]*flight[V]
	unlocked  map[string]*unlockedRun[V] // loads without a lock
}

func (s *shard[V]) init() {
	s.reads, s.refreshes = map[string]*flight[V]{}, map[string]*flight[V]{}
	s.unlocked = map[string]*unlockedRun[V]{}
}

func (s *shard[V]) flights(refresh bool) map[string]*flight[V] {
	if refresh {
		return s.refreshes
	}
	return s.reads
}

func (c *Cache[V]) shard(key string) *shard[V] {
	return &c.shards[maphash.String(c.seed, key)%shardCount]
}

// join returns the key's read flight and whether this call began it.
func (c *Cache[V]) join(ctx context.Context, key string, load Loader[V], m *member[V]) (f *flight[V], first bool, err error) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f = s.reads[key]; f != nil {
		f.waiters++
		return f, false, nil
	}
	if !c.begin() {
		return nil, false, ErrClosed
	}
	f = &flight[V]{key: key, load: load, batch: m, waiters: 1, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.reads[key] = f
	go c.fly(ctx, f)
	return f, true, nil
}

// refresh begins a refresh flight unless there is one or failures hold it back. Nobody waits for it.
func (c *Cache[V]) refresh(ctx context.Context, key string, it *item[V], load Loader[V]) {
	if load == nil || it.stats.holdsBack(c.clock()) != nil {
		return
	}
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refreshes[key] != nil || !c.begin() {
		return
	}
	f := &flight[V]{key: key, load: load, refresh: true, seen: it.fence, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.refreshes[key] = f
	go c.fly(ctx, f)
}

// slow waits for the key's flight; m is its part in a batch, nil outside of one.
func (c *Cache[V]) slow(ctx context.Context, key string, load Loader[V], m *member[V]) (Result[V], error) {
	if isNested(ctx, c, key) {
		return Result[V]{}, ErrNested
	}
	if err := ctx.Err(); err != nil {
		return Result[V]{}, err
	}
	f, first, err := c.join(ctx, key, load, m)
	if err != nil {
		return Result[V]{}, err
	}
	if !first {
		m.leave()
	}
	return c.await(ctx, f, first, load)
}

// await waits for a flight that was joined.
func (c *Cache[V]) await(ctx context.Context, f *flight[V], first bool, load Loader[V]) (Result[V], error) {
	select {
	case <-f.done:
	case <-ctx.Done():
		c.metrics.errors.Inc()
		return Result[V]{}, ctx.Err()
	}
	o := f.out
	switch {
	case o.nobody || o.alone && !first:
		return c.direct(ctx, f.key, load)
	case o.err != nil:
		c.metrics.errors.Inc()
		return Result[V]{}, o.err
	case o.source == Miss && !first:
		o.source = Coalesced
	}
	return c.serve(o.it, o.source, c.clock())
}

// fly runs a flight to its end.
func (c *Cache[V]) fly(caller context.Context, f *flight[V]) {
	defer c.owned.Done()
	defer f.batch.leave()
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(caller), c.opts.WaitTimeout, ErrWaitTimeout)
	defer cancel()
	defer context.AfterFunc(c.base, cancel)()
	ctx = nest(ctx, c, f.key)
	var o outcome[V]
	for try := 0; ; try++ {
		c.clean(f)
		o = c.resolve(ctx, f, try).after(o)
		if c.land(f, o, try) {
			break
		}
	}
	if o.it != nil && o.source == Stale && o.it.err == nil && !f.refresh {
		c.refresh(caller, f.key, o.it, f.load)
	}
}

// clean begins an attempt: what is invalidated from here on is younger than what the attempt finds.
func (c *Cache[V]) clean(f *flight[V]) {
	s := c.shard(f.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.dirty, f.gen = false, c.gen.Load()
}

// maxTries bounds the attempts of a flight whose findings are invalidated under its hands.
const maxTries = 4

// land ends the flight, unless what it found was invalidated meanwhile: then those who joined after the invalidation
// must not get it, and it flies again.
func (c *Cache[V]) land(f *flight[V], o outcome[V], try int) bool {
	s := c.shard(f.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.it != nil && c.overtaken(f, o.it) {
		if try+1 < maxTries {
			return false
		}
		o = failed[V](ErrSuperseded)
	}
	delete(s.flights(f.refresh), f.key)
	if o.it != nil && o.store && c.l1 != nil {
		c.l1.Set(f.key, o.it)
	}
	f.out = o
	close(f.done)
	switch {
	case o.led:
		c.metrics.leaders.Observe(float64(f.waiters))
	case o.waited:
		c.metrics.follows.Observe(float64(f.waiters))
	}
	return true
}

// overtaken reports whether an invalidation is younger than it. The shard is locked.
func (c *Cache[V]) overtaken(f *flight[V], it *item[V]) bool {
	if f.gen != c.gen.Load() {
		return true
	}
	if it.fence == 0 { // loaded without a lock: there is no order but ours
		return f.dirty
	}
	return it.fence <= f.cleared || it.fence <= f.barrier && it.fresh(c.clock())
}

// signal wakes a flight that waits for another process.
func (f *flight[V]) signal() {
	select {
	case f.wake <- struct{}{}:
	default: // awake already
	}
}

// pause waits for a wake-up, or for a poll's time: jittered, growing, and not long past the lease of the lock that
// stands in the way. It returns why the flight must end, if it must.
func (c *Cache[V]) pause(ctx context.Context, f *flight[V], polls int, lease time.Duration) error {
	f.batch.leave()
	c.setPaused(f)
	most := min(c.opts.PollMax, c.opts.PollMin<<min(polls, 10))
	wait := c.opts.PollMin/2 + time.Duration(c.opts.Random()*float64(most))
	if lease > 0 {
		wait = min(wait, lease+c.opts.PollMin)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-f.wake:
	case <-timer.C:
	case <-ctx.Done():
		return c.endOf(ctx)
	}
	return nil
}

// setPaused marks the flight; it stays so until it ends.
func (c *Cache[V]) setPaused(f *flight[V]) {
	s := c.shard(f.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.paused = true
}

// endOf is why a flight's context ended.
func (c *Cache[V]) endOf(ctx context.Context) error {
	if c.base.Err() != nil {
		return ErrClosed
	}
	return context.Cause(ctx)
}
