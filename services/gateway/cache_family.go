package gateway

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

// answerCache keeps what services answered: one libs/cache family a service,
// made when it is first used. Its Run owns them all.
type answerCache struct {
	cfg    CacheConfig
	client redis.UniversalClient // nil: in this process alone
	log    *slog.Logger
	// now is the gate's clock; nil is the real one.
	now     func() time.Time
	metrics *cache.Metrics
	purges  *purgeIndex
	// whole says why the purges are not known yet; age is how old they may be.
	whole func() error
	age   func() time.Duration

	mu       sync.RWMutex
	base     context.Context // of the families; nil while Run does not run
	families map[string]*cacheFamily
	wait     sync.WaitGroup
}

// cacheFamily is one service's answers.
type cacheFamily struct {
	*cache.Cache[*storedAnswer]

	service string
	purges  *purgeIndex
}

func newAnswerCache(cfg CacheConfig, client redis.UniversalClient, metrics *cache.Metrics, log *slog.Logger) *answerCache {
	return &answerCache{
		cfg: cfg, client: client, log: log, metrics: metrics, purges: newPurgeIndex(), families: map[string]*cacheFamily{},
		whole: func() error { return nil }, age: func() time.Duration { return 0 },
	}
}

// Run lets families be made until ctx ends, then ends them and their loads.
func (c *answerCache) Run(ctx context.Context) error {
	c.mu.Lock()
	c.base = ctx
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	c.base = nil
	c.mu.Unlock()
	c.wait.Wait()
	return nil
}

// usable reports whether stored answers may be served: purges that have not been
// read, or not for too long, might forbid it.
func (c *answerCache) usable() bool {
	return c.whole() == nil && (c.cfg.MaxStaleness == 0 || c.age() <= c.cfg.MaxStaleness)
}

// of returns the service's family, nil where there is none to be had.
func (c *answerCache) of(service string) *cacheFamily {
	c.mu.RLock()
	f, running := c.families[service], c.base != nil
	c.mu.RUnlock()
	if f != nil || !running {
		return f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.families[service]; f != nil || c.base == nil {
		return f
	}
	f, err := c.family(service)
	if err != nil {
		c.log.Error("answers of a service are not cached", "service", service, "error", err)
		return nil
	}
	c.families[service] = f
	base := c.base
	c.wait.Go(func() { _ = f.Run(base) }) // nil always
	return f
}

// keptForRevalidation is how long an answer that may not be served any more is
// kept at least, for the service to say that it still holds (304).
const keptForRevalidation = 10 * time.Minute

func (c *answerCache) family(service string) (*cacheFamily, error) {
	f := &cacheFamily{service: service, purges: c.purges}
	o := CacheOptions[*storedAnswer](c.cfg)
	o.Family, o.Redis, o.Prefix, o.Codec = CacheFamily(service), c.client, c.cfg.KeyPrefix, storedCodec{}
	o.L1Size, o.Weigh = c.cfg.MemoryBytes, (*storedAnswer).weight
	o.Valid = func(_ string, a *storedAnswer) bool { return c.purges.valid(service, a) }
	o.Metrics, o.Logger, o.Now = c.metrics, c.log, c.now
	var err error
	f.Cache, err = cache.New(o)
	return f, err
}

// CacheFamily is the family of a service's answers.
func CacheFamily(service string) string { return url.QueryEscape(service) }

// CacheOptions are what every service's family is made with, whatever it keeps:
// a rehearsal plays with the same.
func CacheOptions[V any](cfg CacheConfig) cache.Options[V] {
	return cache.Options[V]{
		TTL: time.Minute, PhysicalTTL: keptForRevalidation,
		// An answer's own word is not stretched: spread shortens it.
		Jitter: -1,
		// 404 is an answer like others.
		NegativeTTL: -1,
		LoadTimeout: cfg.LoadTimeout, RedisTimeout: cfg.RedisTimeout, MaxLoadsAway: cfg.MaxLoadsAway,
		// Nothing is sent to a service twice, and a URL that always fails must not
		// keep others from being asked for: failures hold back their own key.
		Retries: -1, BreakerFailures: math.MaxInt32, BackoffMax: 10 * time.Second,
	}
}
