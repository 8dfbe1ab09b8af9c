// Package cache spares the source behind it: in a whole fleet of processes at most one of them loads a key at a time,
// readers do not wait where a usable value exists, and a source that is down is not asked once a request.
//
//	c, err := cache.New(cache.Options[Product]{
//		Family: "product", Redis: client, TTL: time.Minute,
//		Load: func(ctx context.Context, id string) (cache.Loaded[Product], error) {
//			p, err := db.Product(ctx, id) // cache.ErrNotFound where there is none
//			return cache.Loaded[Product]{Value: p}, err
//		},
//	})
//	go c.Run(ctx)                 // hears invalidations
//	p, err := c.Get(ctx, "4711")
//	err = c.Invalidate(ctx, "4711") // after a change
//
// # Model
//
// A Cache is one family of values. A read looks into L1 (this process, the hottest keys, some seconds), L2 (Redis) and
// at last asks the source. Callers of one key join one flight in their process; flights of all processes compete for
// one lock in Redis. Its winner, the leader, loads and writes; the losers are woken by a message, with a jittered poll
// behind it, and take what it wrote. A load belongs to the Cache: no caller's end is the load's, and one that nobody
// waits for any more ends into the cache, within LoadTimeout, because clients that give up sooner than a load takes
// would otherwise never see it filled.
//
// Each run has a fencing number, taken with the lock and stored with the value: microseconds of Redis's clock, always
// growing, so that numbers of a Redis that lost its data are higher still. An invalidation raises the key's barrier to
// such a number. A value is stored only by the owner of the lock, and only above the barrier; one that is older is
// never fresh again.
//
// A value's freshness (logical TTL) is stored in it; Redis keeps it longer (physical TTL). Its age is what has gone of
// the physical TTL, by Redis's clock: the processes' clocks need not agree.
//
// # Which method when
//
// The join and the lock are always on. What spares readers the wait at the expiry of a key:
//
//   - [Options.StaleWhileRevalidate], where values may be stale for as long as a load takes. Nobody ever waits.
//   - [Options.Beta] (XFetch), where they may not, and the key is read often enough: some reader draws a refresh early.
//   - Neither, where hardly anyone comes during a load, or a load takes a good part of the TTL.
//
// [Cache.Explain] decides by a key's rate, load time and budget, and says why. [Options.StaleIfError] and
// [Options.Fallback] are for the time when the source is down, whatever the method.
//
// # Beside reading
//
// [Cache.Peek] looks and loads nothing, [Cache.PeekLocal] asks nobody, [Cache.PeekStale] tells of what is too stale to be served,
// [Scan] reads what a whole family's values were stored with. [Cache.Refresh] wants something newer than what there
// is, and a loader may ask [Previous] what its answer will replace. Invalidations that name no key (by prefix, by tag) are
// the caller's to keep: [Options.Valid] makes values void. Package tools/rehearsal plays a stampede before it comes.
//
// # Invariants
//
//   - A loser never loads without the lock. Exceptions, by their nature: answers that may not be stored (NoStore,
//     Private), and Redis down; then a process has one load a key and MaxLoadsRedisDown in all. The lock is a lease: a leader
//     that cannot reach Redis for a whole Lease may be joined by another, and its value is then refused.
//   - Failure is not absence: an error reaches all waiters of its run, here and elsewhere, and is never ErrNotFound.
//     ErrNotFound is a value and is cached; it is not hidden by a stale one.
//   - No value is served past its TTL, or its invalidation, by more than StaleWhileRevalidate; by more than the larger
//     of it and StaleIfError while loads fail.
//   - A cleared value, or one that Options.Valid refuses, is never served again, also when the load that was to replace
//     it fails. A process that has not heard of it follows within the bounds below.
//   - An invalidated value is served by a process that hears nothing for at most L1TTL after Redis last confirmed it,
//     RedisDownLimit while Redis is down. Once it hears again the number of invalidations since is compared, and L1 is void
//     where any was missed. An invalidation that a failing Redis forgets is remembered by the processes that heard it.
//   - An invalidation loads nothing: the next reader does.
//
// Redis must not evict locks and barriers before their time: volatile-ttl or noeviction, as for any lock.
//
// Run is the owner of every goroutine but loaders that ignore their context. The package depends on no service; the
// gateway's cache stage and any other Go program feed it.
package cache
