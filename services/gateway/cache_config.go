package gateway

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
)

// CacheConfig bounds the caching of services' answers, which the catalog turns
// on for each service or endpoint.
type CacheConfig struct {
	// KeyPrefix is set from redis.cache.keyPrefix: it belongs to the connection.
	KeyPrefix    string        `koanf:"-"`
	MemoryBytes  int           `koanf:"memoryBytes" doc:"How many bytes of answers this process keeps in memory for each cached service; all of them are in Redis (redis.cache), if there is one."`
	LoadTimeout  time.Duration `koanf:"loadTimeout" doc:"How long a service may take for an answer that is to be stored, its body included (504 beyond)."`
	RedisTimeout time.Duration `koanf:"redisTimeout" doc:"How long one call of the cache's Redis may take before it counts as away."`
	MaxLoadsAway int           `koanf:"maxLoadsAway" doc:"How many loads this gateway has under way for each service while the cache's Redis is away and cannot keep gateways from loading the same."`
	MaxStaleness time.Duration `koanf:"maxStaleness" doc:"How old the table of purges may be before nothing is served from the cache, since a purge may have been missed. 0: however old."`
}

// DefaultCacheConfig returns the defaults.
func DefaultCacheConfig() CacheConfig {
	return CacheConfig{
		KeyPrefix: "cache:", MemoryBytes: 64 << 20, LoadTimeout: 90 * time.Second, RedisTimeout: 100 * time.Millisecond, MaxLoadsAway: 64,
	}
}

// HTTPOptions are the options of the cache that a gateway with this configuration makes, without what is its own at run
// time.
func (c *CacheConfig) HTTPOptions() httpcache.Options {
	return httpcache.Options{
		Prefix: c.KeyPrefix, MemoryBytes: c.MemoryBytes, LoadTimeout: c.LoadTimeout, RedisTimeout: c.RedisTimeout, MaxLoadsRedisDown: c.MaxLoadsAway,
		MaxFresh: catalog.MaxFresh, MaxStale: catalog.MaxStale,
		Identity:    []string{identify.HeaderTenant, identify.HeaderUser, identify.HeaderApplication},
		Credentials: []string{identify.HeaderAuthorization, identify.HeaderAPIKey},
		Omit:        proxy.WrittenByGate,
	}
}

// usable reports whether stored responses may be served: purges that were not read, or not for too long, may forbid it.
func (c *CacheConfig) usable(ready func() error, age func() time.Duration) func() bool {
	return func() bool { return ready() == nil && (c.MaxStaleness == 0 || age() <= c.MaxStaleness) }
}

func (c *CacheConfig) check() error {
	var errs []error
	if c.MemoryBytes < 1 {
		errs = append(errs, fmt.Errorf("gateway.cache.memoryBytes must be at least 1, not %d", c.MemoryBytes))
	}
	if c.MaxLoadsAway < 1 {
		errs = append(errs, fmt.Errorf("gateway.cache.maxLoadsAway must be at least 1, not %d", c.MaxLoadsAway))
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"loadTimeout", c.LoadTimeout}, {"redisTimeout", c.RedisTimeout}} {
		if d.d <= 0 {
			errs = append(errs, fmt.Errorf("gateway.cache.%s must be more than 0, not %s", d.name, d.d))
		}
	}
	if c.MaxStaleness < 0 {
		errs = append(errs, fmt.Errorf("gateway.cache.maxStaleness must not be negative, not %s", c.MaxStaleness))
	}
	return errors.Join(errs...)
}
