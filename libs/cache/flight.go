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
	key   string
	owner string // of its lock
	load  Loader[V]
	seen  int64 // a refresh wants something newer than this run; 0 is a read
	kind  flightKind
	wake  chan struct{}
	done  chan struct{}
	out   outcome[V] // after done

	// Guarded by the shard.
	waiters       int
	paused        bool     // it waits for another process
	invalidations position // invalidations heard while it flew
	readAt        position // those heard when what it found was read
	barrier       int64    // the fence of the newest
}

// position is a place in the order of what invalidated a key here: messages, and losses of all of L1.
type position struct {
	messages int
	gen      uint64
}

// covers reports whether what was read at m is good for one who asked at asked: nothing was invalidated between.
func (m position) covers(asked position) bool {
	return m.messages >= asked.messages && m.gen >= asked.gen
}

// outcome is how a flight ended.
type outcome[V any] struct {
	it              *item[V] // nil with err, and where everybody loads alone
	source          Source   // of the caller that began it
	err             error
	store           bool     // it may go to L1
	led             bool     // this process loaded
	waited          bool     // another one did
	private         bool     // private: only the caller that began the flight may have it
	recentlyPrivate bool     // private of late: everybody loads alone
	newest          bool     // it is younger than every invalidation heard
	at              position // when it was read
}

func failed[V any](err error) outcome[V] { return outcome[V]{err: err} }

const shardCount = 64

// flightKind keeps flights apart: a reader never waits for a refresh while Redis has something usable, and whoever only
// looks waits for no load.
type flightKind uint8

const (
	reading    flightKind = iota // what there is, else a load
	refreshing                   // something newer than what there is
	peeking                      // what there is
	flightKinds
)

// shard holds the flights of some keys, by kind.
type shard[V any] struct {
	mu       sync.Mutex
	flights  [flightKinds]map[string]*flight[V]
	unlocked map[string]*unlockedRun[V] // loads without a lock
}

func (s *shard[V]) init() {
	for kind := range s.flights {
		s.flights[kind] = map[string]*flight[V]{}
	}
	s.unlocked = map[string]*unlockedRun[V]{}
}

func (c *Cache[V]) shard(key string) *shard[V] {
	return &c.shards[maphash.String(c.seed, key)%shardCount]
}

// ticket is a caller's place in a flight.
type ticket[V any] struct {
	f     *flight[V]
	first bool // it began the flight
	asked position
}

// request is what a caller asks a flight for.
type request[V any] struct {
	kind flightKind
	load Loader[V]
	seen int64 // of refreshing
}

// join puts the caller into the key's flight of its kind.
func (c *Cache[V]) join(ctx context.Context, key string, w request[V]) (ticket[V], error) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	gen := c.gen.Load()
	if f := s.flights[w.kind][key]; f != nil {
		f.waiters++
		f.invalidations.gen = gen
		return ticket[V]{f: f, asked: f.invalidations}, nil
	}
	if !c.begin() {
		return ticket[V]{}, ErrClosed
	}
	f := newFlight(key, w)
	f.waiters = 1
	f.invalidations.gen = gen
	s.flights[w.kind][key] = f
	go c.runFlight(ctx, f)
	return ticket[V]{f: f, first: true, asked: f.invalidations}, nil
}

func newFlight[V any](key string, w request[V]) *flight[V] {
	return &flight[V]{
		key: key, kind: w.kind, load: w.load, seen: w.seen, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// refresh begins a refresh flight unless there is one or failures hold it back. Nobody waits for it.
func (c *Cache[V]) refresh(ctx context.Context, key string, it *item[V], load Loader[V]) {
	if load == nil || it.stats.holdsBack(c.clock()) != nil {
		return
	}
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[refreshing][key] != nil || !c.begin() {
		return
	}
	f := newFlight(key, request[V]{kind: refreshing, load: load, seen: it.fence})
	s.flights[refreshing][key] = f
	go c.runFlight(ctx, f)
}

// slow is what the caller's flight brings to this caller.
func (c *Cache[V]) slow(ctx context.Context, key string, w request[V]) (Result[V], error) {
	t, err := c.wait(ctx, key, w)
	if err != nil {
		return Result[V]{}, err
	}
	return c.resultOf(ctx, t, w.load)
}

// wait waits for a flight that fulfils the wish.
func (c *Cache[V]) wait(ctx context.Context, key string, w request[V]) (ticket[V], error) {
	if isNested(ctx, c, key) {
		return ticket[V]{}, ErrNested
	}
	for {
		if err := ctx.Err(); err != nil {
			return ticket[V]{}, err
		}
		t, err := c.join(ctx, key, w)
		if err != nil {
			return ticket[V]{}, err
		}
		select {
		case <-t.f.done:
		case <-ctx.Done():
			c.metrics.errors.Inc()
			return ticket[V]{}, ctx.Err()
		}
		if o := &t.f.out; o.it == nil || (o.newest || o.at.covers(t.asked)) && t.f.seen >= w.seen {
			return t, nil
		}
		// It had read what was invalidated before this caller asked. Those who asked earlier have got it, so the
		// next flight is this one's.
	}
}

// resultOf is the outcome of a caller's flight for this caller.
func (c *Cache[V]) resultOf(ctx context.Context, t ticket[V], load Loader[V]) (Result[V], error) {
	o := t.f.out
	switch {
	case o.recentlyPrivate || o.private && !t.first:
		return c.direct(ctx, t.f.key, load)
	case o.err != nil:
		c.metrics.errors.Inc()
		return Result[V]{}, o.err
	case o.source == Miss && !t.first:
		o.source = Coalesced
	}
	return c.serve(o.it, o.source, c.clock())
}

// runFlight runs a flight to its end.
func (c *Cache[V]) runFlight(caller context.Context, f *flight[V]) {
	defer c.owned.Done()
	if c.l2 != nil {
		f.owner = c.l2.owner()
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(caller), c.opts.WaitTimeout, ErrWaitTimeout)
	defer cancel()
	defer context.AfterFunc(c.base, cancel)()
	o := c.resolve(nest(ctx, c, f.key), f)
	c.endFlight(f, o)
	if o.it != nil && o.source == Stale && o.it.err == nil && f.kind == reading {
		c.refresh(caller, f.key, o.it, f.load)
	}
}

// markRead marks the instant before Redis or the source is asked: what is invalidated from here on is younger than the
// answer. It returns L1's generation.
func (c *Cache[V]) markRead(f *flight[V]) uint64 {
	s := c.shard(f.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.invalidations.gen = c.gen.Load()
	f.readAt = f.invalidations
	return f.readAt.gen
}

// endFlight ends the flight. What was invalidated meanwhile does not go to L1, and not to those who asked after that.
func (c *Cache[V]) endFlight(f *flight[V], o outcome[V]) {
	s := c.shard(f.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flights[f.kind], f.key)
	f.invalidations.gen = c.gen.Load()
	o.at = f.readAt
	o.newest = o.it != nil && o.it.fence > f.barrier && f.invalidations.gen == f.readAt.gen && f.barrier > 0
	if o.it != nil && o.store && c.l1 != nil && (o.newest || o.at.covers(f.invalidations)) {
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
