package cache

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options of a Cache. Family, Load and TTL are required; every other field has a usable zero value.
type Options[V any] struct {
	// Family names what is cached ("product"): a part of the keys in Redis, and the only metric label. Its processes
	// must agree on it, on Prefix and on Codec.
	Family string
	// Load asks the source. It may be nil when every call brings its own (FetchWith).
	Load Loader[V]
	// Codec is JSON[V] by default.
	Codec Codec[V]

	// Redis is shared by the fleet, see ConfigureRedis. nil keeps everything in this process.
	Redis redis.UniversalClient
	// Prefix begins every key in Redis; default "cache:".
	Prefix string

	// TTL is how long a value is fresh.
	TTL time.Duration
	// Jitter spreads TTLs by ± this share, so that what was loaded together does not expire together; default 0.15,
	// negative is none. One draw a value, for its logical and its physical TTL.
	Jitter float64
	// PhysicalTTL is how long Redis keeps a value; default twice its TTL, and never shorter than the stale limits need.
	PhysicalTTL time.Duration
	// NegativeTTL is how long ErrNotFound is kept; default TTL/10, negative is not at all.
	NegativeTTL time.Duration
	// Beta turns on XFetch: 1 is the paper's optimum, more refreshes earlier; 0 is off.
	Beta float64
	// StaleWhileRevalidate is how long past its TTL a value is served while it is refreshed behind the reader's back;
	// StaleIfError, while the source fails (RFC 5861). Both are hard limits from the TTL's end or the invalidation.
	StaleWhileRevalidate, StaleIfError time.Duration
	// UncacheableTTL is how long a NoStore or Private answer is remembered; default 10 s.
	UncacheableTTL time.Duration

	// L1Size is the number of values kept in this process, or with Weigh their weight; default 500, negative is none.
	L1Size int
	// Weigh is what a value takes of L1Size, the bytes it holds for example; nil is 1 each.
	Weigh func(V) uint32
	// Valid reports whether a value may still be used; one that may not is as good as cleared. It is for invalidations
	// that name no key: the caller keeps them, and marks values so that it can tell older from newer ones. It is asked
	// at each read, must be fast and safe for concurrent use, and must not change its mind from false to true. A value
	// that is being loaded may become invalid before it is returned. nil is always.
	Valid func(key string, v V) bool
	// L1TTL is how long they are used without asking Redis: the bound on stale reads of a process that hears no
	// invalidations while it reaches Redis; default 5 s.
	L1TTL time.Duration
	// RedisDownLimit is the same while Redis is down; default 30 s.
	RedisDownLimit time.Duration

	// LoadTimeout bounds one call of the loader; default 30 s.
	LoadTimeout time.Duration
	// WaitTimeout bounds a run with its retries, or the wait for one; default 2 × LoadTimeout.
	WaitTimeout time.Duration
	// Lease is the time after which a dead leader's lock is free; default 3 s. A living one renews it.
	Lease time.Duration
	// PollMin and PollMax bound the jittered poll behind a lost wake-up; default 50 and 250 ms.
	PollMin, PollMax time.Duration
	// RedisTimeout bounds one call of Redis; default 100 ms.
	RedisTimeout time.Duration
	// MaxLoadsRedisDown caps the loads of this process, all keys together, while there is no lock to be had; default 8.
	MaxLoadsRedisDown int

	// Retries of a failed load, within the run and the retry budget; default 1, negative is none.
	Retries int
	// RetryMin and RetryMax bound the full jitter between them; default 50 ms and 1 s.
	RetryMin, RetryMax time.Duration
	// RetryRatio is the budget: retries a load, over time; default 0.1.
	RetryRatio float64
	// BackoffMin and BackoffMax bound the time without loads of a key from its second failure in a row on; default 1 s
	// and 30 s.
	BackoffMin, BackoffMax time.Duration
	// BreakerFailures in a row, over all keys, open the breaker; default 10. BreakerProbe is the time between probes
	// of an open one; default 1 s.
	BreakerFailures int
	BreakerProbe    time.Duration
	// IsFailure tells failures of the source from its answers: an answer (a 403, say) reaches the callers as it is, is
	// neither retried nor hidden by a stale value, and counts as a sign of life. nil: every error but ErrNotFound fails.
	IsFailure func(error) bool
	// Fallback is served, marked and never stored, when a load fails and nothing stale may be used; nil is none.
	Fallback func(key string) (V, bool)

	// Metrics may be shared by caches; nil measures nothing.
	Metrics *Metrics
	// Logger is slog.Default() when nil.
	Logger *slog.Logger
	// Now is the clock, which need not agree with other processes': ages are Redis's. nil is time.Now.
	Now func() time.Time
	// Random draws from [0,1); nil is math/rand/v2. It must be safe for concurrent use.
	Random func() float64
}

const defaultPrefix = "cache:"

var (
	errFamily    = errors.New("cache: options: family is empty or holds one of : { }")
	errTTL       = errors.New("cache: options: ttl must be positive")
	errDeadlines = errors.New("cache: options: redis client ignores deadlines, see ConfigureRedis")
	errJitter    = errors.New("cache: options: jitter must be below 1")
	errLease     = errors.New("cache: options: lease is below 10 ms")
)

// withDefaults checks o and fills in what is not set.
func (o Options[V]) withDefaults() (Options[V], error) {
	switch {
	case o.Family == "" || strings.ContainsAny(o.Family, ":{}"):
		return o, errFamily
	case o.TTL <= 0:
		return o, errTTL
	case o.Jitter >= 1:
		return o, errJitter
	case o.Redis != nil && !honoursDeadlines(o.Redis):
		return o, errDeadlines
	}
	o.loadDefaults()
	o.timeDefaults()
	if o.Lease < 10*time.Millisecond {
		return o, errLease
	}
	return o, nil
}

func (o *Options[V]) loadDefaults() {
	if o.Codec == nil {
		o.Codec = JSON[V]{}
	}
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.IsFailure == nil {
		o.IsFailure = func(error) bool { return true }
	}
	o.L1Size = or(o.L1Size, 500)
	o.MaxLoadsRedisDown = or(o.MaxLoadsRedisDown, 8)
	o.Retries = max(0, or(o.Retries, 1))
	o.RetryRatio = or(o.RetryRatio, 0.1)
	o.BreakerFailures = or(o.BreakerFailures, 10)
	o.Jitter = max(0, or(o.Jitter, 0.15))
}

func (o *Options[V]) timeDefaults() {
	o.NegativeTTL = or(o.NegativeTTL, max(o.TTL/10, time.Millisecond))
	o.UncacheableTTL = or(o.UncacheableTTL, 10*time.Second)
	o.L1TTL = or(o.L1TTL, 5*time.Second)
	o.RedisDownLimit = or(o.RedisDownLimit, 30*time.Second)
	o.LoadTimeout = or(o.LoadTimeout, 30*time.Second)
	o.WaitTimeout = or(o.WaitTimeout, 2*o.LoadTimeout)
	o.Lease = or(o.Lease, 3*time.Second)
	o.PollMin = or(o.PollMin, 50*time.Millisecond)
	o.PollMax = max(o.PollMin, or(o.PollMax, 250*time.Millisecond))
	o.RedisTimeout = or(o.RedisTimeout, 100*time.Millisecond)
	o.RetryMin = or(o.RetryMin, 50*time.Millisecond)
	o.RetryMax = or(o.RetryMax, time.Second)
	o.BackoffMin = or(o.BackoffMin, time.Second)
	o.BackoffMax = or(o.BackoffMax, 30*time.Second)
	o.BreakerProbe = or(o.BreakerProbe, time.Second)
}

// or is v, or its default where it is not set.
func or[T int | float64 | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
