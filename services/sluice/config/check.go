package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/libs/usagestore/elastic"
)

// checks collects what is wrong with values that have the right type.
type checks struct{ errs []error }

func (c *checks) wrong(key, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
}

func (c *checks) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.wrong(key, "%q is none of %s", value, strings.Join(allowed, ", "))
	}
}

func (c *checks) addr(key, value string) {
	if _, port, err := net.SplitHostPort(value); err != nil || port == "" {
		c.wrong(key, "%q is no address: give host:port or :port", value)
	}
}

func (c *checks) url(key, value string, schemes ...string) bool {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		// The value may hold a password and is not repeated.
		c.wrong(key, "not a URL: give %s://host:port…", schemes[0])
		return false
	}
	return true
}

// room takes over what a room, or a client of several, refuses of its own
// section: each of its errors names the key already.
func (c *checks) room(err error) {
	if joined, several := err.(interface{ Unwrap() []error }); several {
		for _, one := range joined.Unwrap() {
			c.room(one)
		}
	} else if err != nil {
		c.errs = append(c.errs, err)
	}
}

func (c *checks) atLeast(key string, value, least int64) {
	if value < least {
		c.wrong(key, "%d is too small: at least %d", value, least)
	}
}

func (c *checks) notNegative(key string, value time.Duration) {
	if value < 0 {
		c.wrong(key, "%s is negative", value)
	}
}

// check holds what belongs to no single room, and asks the rooms about their
// own sections: a configuration that is printed or started with one module is
// as good for all.
func (c Config) check() []error {
	var is checks
	is.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	is.oneOf("log.format", c.Log.Format, "text", "json")
	is.notNegative("stop.drainDelay", c.Stop.DrainDelay)
	if c.Stop.Timeout <= 0 {
		is.wrong("stop.timeout", "%s: give more than 0", c.Stop.Timeout)
	}
	is.postgres(c.Postgres.URL.Reveal())
	is.atLeast("postgres.maxConns", int64(c.Postgres.MaxConns), 2)
	is.redis("redis.counters.", c.Redis.Counters)
	if c.Redis.Cache.Given() {
		is.redis("redis.cache.", c.Redis.Cache)
	}
	is.oneOf("usage.store", c.Usage.Store, UsageElasticsearch, UsagePostgres)
	is.elasticsearch(c.Elasticsearch, c.Usage.Store == UsageElasticsearch)
	is.listeners(c)
	if len(c.Kafka.Brokers) == 0 {
		is.wrong("kafka.brokers", "empty: give at least one host:port")
	}
	for _, broker := range c.Kafka.Brokers {
		is.addr("kafka.brokers", broker)
	}
	if err := c.Kafka.Check(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			is.errs = append(is.errs, errors.New("kafka."+line))
		}
	}
	for _, room := range []interface{ Check() error }{c.Controlplane, c.Relay, c.Gateway.Config, c.Keeper, c.Billing, c.Indexer, c.Webhooks, c.Portal} {
		is.room(room.Check())
	}
	return is.errs
}

func (c *checks) postgres(dsn string) {
	if !c.url("postgres.url", dsn, "postgres", "postgresql") {
		return
	}
	if _, err := pgxpool.ParseConfig(dsn); err != nil {
		// The parser's error repeats the URL with its password cut out at best.
		c.wrong("postgres.url", "not a connection URL that pgx understands")
	}
}

// elasticsearch: used says that a store will be made of it, which has demands
// of its own.
func (c *checks) elasticsearch(e Elasticsearch, used bool) {
	c.oneOf("elasticsearch.flavor", e.Flavor, elastic.FlavorElasticsearch, elastic.FlavorOpenSearch)
	if c.url("elasticsearch.url", e.URL, "http", "https") && used {
		// The flavor was judged above.
		if err := (elastic.Config{URL: e.URL, IndexPrefix: e.IndexPrefix}).Check(); err != nil {
			c.errs = append(c.errs, fmt.Errorf("elasticsearch.%w", err))
		}
	}
	if e.APIKey != "" && e.Username != "" {
		c.wrong("elasticsearch.apiKey", "given together with elasticsearch.username: choose one")
	}
}

func (c *checks) listeners(cfg Config) {
	c.addr("admin.listen", cfg.Admin.Listen)
	c.addr("controlplane.listen", cfg.Controlplane.Listen)
	c.addr("gateway.listen", cfg.Gateway.Listen)
	for i, addr := range cfg.Gateway.More {
		c.addr(fmt.Sprintf("gateway.more[%d]", i), addr)
	}
	c.addr("demo.listen", cfg.Demo.Listen)
}

func (c *checks) redis(at string, r RedisConnection) {
	c.oneOf(at+"mode", r.Mode, RedisSingle, RedisSentinel, RedisCluster)
	if len(r.Addrs) == 0 {
		c.addr(at+"addr", r.Addr)
	}
	for i, addr := range r.Addrs {
		c.addr(fmt.Sprintf("%saddrs[%d]", at, i), addr)
	}
	switch {
	case r.Mode == RedisSingle && len(r.Addrs) > 1:
		c.wrong(at+"addrs", "%d addresses, but %smode is single: give one, or mode sentinel or cluster", len(r.Addrs), at)
	case r.Mode == RedisSentinel && r.MasterName == "":
		c.wrong(at+"masterName", "empty: give the name by which the Sentinels know the master")
	case r.Mode != RedisSentinel && r.MasterName != "":
		c.wrong(at+"masterName", "given, but %smode is %s, not sentinel", at, r.Mode)
	case r.Mode != RedisSentinel && (r.SentinelPassword != "" || r.SentinelUsername != ""):
		c.wrong(at+"sentinelPassword", "given, but %smode is %s, not sentinel", at, r.Mode)
	case r.Mode == RedisCluster && r.DB != 0:
		c.wrong(at+"db", "%d, but a Cluster has database 0 only", r.DB)
	}
	c.atLeast(at+"db", int64(r.DB), 0)
	if strings.ContainsAny(r.KeyPrefix, "{}") {
		c.wrong(at+"keyPrefix", "%q holds a brace, which would move keys of a Cluster", r.KeyPrefix)
	}
	c.atLeast(at+"poolSize", int64(r.PoolSize), 1)
	if r.TLS.CAFile != "" && !r.TLS.Enabled {
		c.wrong(at+"tls.caFile", "given, but %stls.enabled is false", at)
	}
}
