package httpcache

import (
	"context"
	"log/slog"
	"math"
	"net/url"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
)

// Options of a Cache.
type Options struct {
	// Redis is shared by the processes; nil keeps responses in this process alone.
	Redis redis.UniversalClient
	// Prefix begins every key in Redis; default "cache:".
	Prefix string
	// MemoryBytes is how many bytes of responses this process keeps of each family.
	MemoryBytes int
	// LoadTimeout bounds one load, body included; RedisTimeout one call of Redis.
	LoadTimeout, RedisTimeout time.Duration
	// MaxLoadsRedisDown caps the concurrent loads of a family while Redis is down.
	MaxLoadsRedisDown int
	// MaxFresh and MaxStale cap what responses and policies say; 0 is no cap.
	MaxFresh, MaxStale time.Duration

	// Identity are the request headers, canonical, by which the origin learns who the caller is.
	Identity []string
	// Credentials are those by which a caller proves it, and which the proxy may have removed.
	Credentials []string
	// Omit reports response fields that are not stored: the proxy writes them anew for each response. nil: none.
	Omit func(name string) bool

	// Purges void stored responses; nil is an index of the Cache's own, which stays empty.
	Purges *Purges
	// Usable reports whether Purges is complete and recent enough to serve by. nil: always.
	Usable func() bool

	Metrics *cache.Metrics // nil: none
	Log     *slog.Logger   // nil: slog.Default
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Cache stores responses: one family of libs/cache an origin, made at its first use. It is safe for concurrent use.
type Cache struct {
	o      Options
	log    *slog.Logger
	now    func() time.Time
	purges *Purges
	// usable is Options.Usable.
	usable func() bool

	mu       sync.RWMutex
	base     context.Context // of the families; nil while Run does not run
	running  chan struct{}   // closed once Run runs
	families map[string]*family
	wait     sync.WaitGroup
}

// family are one origin's responses.
type family struct {
	*cache.Cache[*storedResponse]

	name   string
	purges *Purges
}

// New makes a Cache. It stores nothing before Run runs.
func New(o Options) *Cache {
	c := &Cache{o: o, log: o.Log, now: o.Now, purges: o.Purges, usable: o.Usable, running: make(chan struct{}), families: map[string]*family{}}
	if c.log == nil {
		c.log = slog.Default()
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.purges == nil {
		c.purges = NewPurges()
	}
	if c.usable == nil {
		c.usable = func() bool { return true }
	}
	return c
}

// Run lets families be made until ctx ends, then ends them and their loads. It returns nil; call it once.
func (c *Cache) Run(ctx context.Context) error {
	c.mu.Lock()
	c.base = ctx
	c.mu.Unlock()
	close(c.running)
	<-ctx.Done()
	c.mu.Lock()
	c.base = nil
	c.mu.Unlock()
	c.wait.Wait()
	return nil
}

// Running is closed once responses can be stored.
func (c *Cache) Running() <-chan struct{} { return c.running }

// family returns the family of that name, nil where none can be made.
func (c *Cache) family(name string) *family {
	c.mu.RLock()
	f, running := c.families[name], c.base != nil
	c.mu.RUnlock()
	if f != nil || !running {
		return f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.families[name]; f != nil || c.base == nil {
		return f
	}
	f, err := c.newFamily(name)
	if err != nil {
		c.log.Error("responses of an origin are not cached", "family", name, "error", err)
		return nil
	}
	c.families[name] = f
	base := c.base
	c.wait.Go(func() { _ = f.Run(base) }) // nil always
	return f
}

// minRetention is how long a response that is stale beyond its limits is kept at least, so that the origin can confirm
// it (304).
const minRetention = 10 * time.Minute

func (c *Cache) newFamily(name string) (*family, error) {
	f := &family{name: name, purges: c.purges}
	o := FamilyOptions[*storedResponse](c.o)
	o.Family, o.Redis, o.Prefix, o.Codec = FamilyName(name), c.o.Redis, c.o.Prefix, storedCodec{}
	o.L1Size, o.Weigh = c.o.MemoryBytes, (*storedResponse).weight
	o.Valid = func(_ string, s *storedResponse) bool { return c.purges.valid(name, s) }
	o.Metrics, o.Logger, o.Now = c.o.Metrics, c.log, c.o.Now
	var err error
	f.Cache, err = cache.New(o)
	return f, err
}

// FamilyName is the name of an origin's family in libs/cache.
func FamilyName(origin string) string { return url.QueryEscape(origin) }

// FamilyOptions are the options of libs/cache that every family has, whatever it stores: a simulation uses the same.
func FamilyOptions[V any](o Options) cache.Options[V] {
	return cache.Options[V]{
		TTL: time.Minute, PhysicalTTL: minRetention,
		// A lifetime that a response states is not stretched: shorten takes a part off.
		Jitter: -1,
		// A 404 is a response like others.
		NegativeTTL: -1,
		LoadTimeout: o.LoadTimeout, RedisTimeout: o.RedisTimeout, MaxLoadsRedisDown: o.MaxLoadsRedisDown,
		// No request is sent to an origin twice. A URL that always fails must not keep other URLs of its origin from
		// being loaded: failures hold back their own key only.
		Retries: -1, BreakerFailures: math.MaxInt32, BackoffMax: 10 * time.Second,
	}
}
