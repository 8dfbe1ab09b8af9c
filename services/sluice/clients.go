package sluice

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/ticket"
	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/libs/usagestore/elastic"
	"github.com/sluice-platform/sluice/libs/usagestore/pgstore"
	"github.com/sluice-platform/sluice/libs/webhook"
	"github.com/sluice-platform/sluice/services/sluice/config"
)

// clients are what several modules of one process share. Each is built when a
// module first asks, connects when it is first used, and is closed by close.
// The constructors of a table run one after another: no lock.
type clients struct {
	cfg      config.Config
	log      *slog.Logger
	registry *prometheus.Registry

	schema *schema
	pool   *pgxpool.Pool
	redis  redis.UniversalClient
	cache  redis.UniversalClient
	usage  usagestore.Store
	sender *webhook.Sender

	tickets *ticket.File
}

// close closes what was built, after the last module has stopped.
func (c *clients) close() error {
	if c.pool != nil {
		c.pool.Close()
	}
	if c.sender != nil {
		c.sender.Close()
	}
	var errs []error
	for _, client := range []redis.UniversalClient{c.redis, c.cache} {
		if client == nil {
			continue
		}
		if err := client.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close redis: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Webhooks signs, seals and sends: the control plane and the module that
// delivers do so by one configuration.
func (c *clients) Webhooks() (*webhook.Sender, error) {
	if c.sender != nil {
		return c.sender, nil
	}
	sender, err := webhook.New(c.cfg.Webhooks.Config, nil)
	if err != nil {
		return nil, fmt.Errorf("make the sender of webhooks: %w", err)
	}
	c.sender = sender
	return sender, nil
}

// Tickets keeps the keys that links to the portal are signed with.
func (c *clients) Tickets() (*ticket.File, error) {
	if c.tickets != nil {
		return c.tickets, nil
	}
	if c.cfg.Portal.KeysFile == "" {
		return nil, errors.New("portal.keysFile is empty: name a file with a key a line, its id and 32 random bytes in base64 (openssl rand -base64 32)")
	}
	file, err := ticket.OpenFile(c.cfg.Portal.KeysFile, 0, c.log.With("module", moduleTickets))
	if err != nil {
		return nil, fmt.Errorf("portal.keysFile: %w", err)
	}
	c.tickets = file
	return c.tickets, nil
}

// Schema is the one module that migrates.
func (c *clients) Schema() *schema {
	if c.schema == nil {
		c.schema = newSchema(c.cfg.Postgres.URL, c.log.With("module", modulePostgres))
	}
	return c.schema
}

// Pool is the connections to Postgres; it makes none until one is asked for.
func (c *clients) Pool() (*pgxpool.Pool, error) {
	if c.pool != nil {
		return c.pool, nil
	}
	parsed, err := pgxpool.ParseConfig(c.cfg.Postgres.URL.Reveal())
	if err != nil {
		// The parser's error repeats the URL with its password cut out at best.
		return nil, errors.New("postgres.url: not a connection URL that pgx understands")
	}
	parsed.MaxConns = c.cfg.Postgres.MaxConns
	if c.pool, err = pgxpool.NewWithConfig(background(), parsed); err != nil {
		return nil, fmt.Errorf("make the postgres pool: %w", err)
	}
	return c.pool, nil
}

// Redis is the client for the counters, set up as their store wants it: short
// time-outs, no retries of its own.
func (c *clients) Redis() (redis.UniversalClient, error) {
	if c.redis != nil {
		return c.redis, nil
	}
	options, err := c.redisOptions("redis.counters.", c.cfg.Redis.Counters)
	if err != nil {
		return nil, err
	}
	redisstore.Configure(options, c.cfg.Gateway.Store.Timeout)
	c.redis = redis.NewUniversalClient(options)
	return c.redis, nil
}

// Cache is the client for stored answers, nil where none is configured.
func (c *clients) Cache() (redis.UniversalClient, error) {
	if c.cache != nil || !c.cfg.Redis.Cache.Given() {
		return c.cache, nil
	}
	options, err := c.redisOptions("redis.cache.", c.cfg.Redis.Cache)
	if err != nil {
		return nil, err
	}
	cache.ConfigureRedis(options, c.cfg.Gateway.Cache.RedisTimeout)
	c.cache = redis.NewUniversalClient(options)
	return c.cache, nil
}

func (c *clients) redisOptions(at string, conn config.RedisConnection) (*redis.UniversalOptions, error) {
	redis.SetLogger(redisLog{c.log.With("client", "redis")})
	return conn.Options(at)
}

// Usage is where usage events are kept, as usage.store says.
func (c *clients) Usage() (usagestore.Store, error) {
	if c.usage != nil {
		return c.usage, nil
	}
	if c.cfg.Usage.Store == config.UsagePostgres {
		pool, err := c.Pool()
		if err != nil {
			return nil, err
		}
		c.usage = pgstore.New(pool)
		return c.usage, nil
	}
	e := c.cfg.Elasticsearch
	store, err := elastic.New(elastic.Config{
		URL: e.URL, Flavor: e.Flavor, Username: e.Username, Password: e.Password.Reveal(), APIKey: e.APIKey.Reveal(),
		IndexPrefix: e.IndexPrefix, Log: c.log,
	})
	if err != nil {
		return nil, fmt.Errorf("elasticsearch: %w", err)
	}
	c.usage = store
	return c.usage, nil
}
