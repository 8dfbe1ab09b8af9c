package config

import (
	"time"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/libs/usagestore/elastic"
	"github.com/sluice-platform/sluice/services/billing"
	"github.com/sluice-platform/sluice/services/controlplane"
	"github.com/sluice-platform/sluice/services/demo"
	"github.com/sluice-platform/sluice/services/gateway"
	"github.com/sluice-platform/sluice/services/indexer"
	"github.com/sluice-platform/sluice/services/keeper"
	"github.com/sluice-platform/sluice/services/portal"
	"github.com/sluice-platform/sluice/services/relay"
	"github.com/sluice-platform/sluice/services/webhooks"
)

// Config is all of it, a section for each shared client and each room.
type Config struct {
	Log           Log                 `koanf:"log"`
	Admin         service.AdminConfig `koanf:"admin"`
	Stop          Stop                `koanf:"stop"`
	Kafka         stream.Config       `koanf:"kafka"`
	Postgres      Postgres            `koanf:"postgres"`
	Redis         Redis               `koanf:"redis"`
	Usage         Usage               `koanf:"usage"`
	Elasticsearch Elasticsearch       `koanf:"elasticsearch"`
	Controlplane  controlplane.Config `koanf:"controlplane"`
	Relay         relay.Config        `koanf:"relay"`
	Gateway       Gateway             `koanf:"gateway"`
	Keeper        keeper.Config       `koanf:"keeper"`
	Billing       billing.Config      `koanf:"billing"`
	Indexer       indexer.Config      `koanf:"indexer"`
	Webhooks      webhooks.Config     `koanf:"webhooks"`
	Portal        portal.Config       `koanf:"portal"`
	Demo          demo.Config         `koanf:"demo"`
}

// Gateway is a gateway and, in the same process, further ones.
type Gateway struct {
	gateway.Config `koanf:",squash"`

	More []string `koanf:"more" doc:"Addresses of further gateways in this process, each an instance of its own: its id, spool folder and metrics carry the suffix -2, -3 and so on."`
}

// Log says what is logged and how.
type Log struct {
	Level  string `koanf:"level" doc:"Least level that is logged: debug, info, warn or error."`
	Format string `koanf:"format" doc:"Form of the log on standard error: text or json."`
}

// Stop bounds the end of the process.
type Stop struct {
	DrainDelay time.Duration `koanf:"drainDelay" doc:"How long the process goes on serving after SIGTERM with /readyz already answering 503, so that load balancers look elsewhere first."`
	Timeout    time.Duration `koanf:"timeout" doc:"Longest wait for each module to stop."`
}

// Postgres is the database of truth; controlplane, relay, keeper and webhooks use it,
// and the usage store where it is chosen.
type Postgres struct {
	URL      service.Secret `koanf:"url" doc:"Connection URL, postgres://user:password@host:port/database?sslmode=…; its user may create tables and replicate." form:"url"`
	MaxConns int32          `koanf:"maxConns" doc:"Most connections of this process, the relay's replication connection not counted."`
}

// Redis holds the connections to Redis, one for each purpose.
type Redis struct {
	Counters RedisConnection `koanf:"counters"`
	// Cache is used where it has an address.
	Cache RedisConnection `koanf:"cache"`
}

// RedisConnection is a connection to a Redis, alone, under Sentinel or as a
// Cluster.
type RedisConnection struct {
	Mode             string         `koanf:"mode" doc:"What is at the addresses: single (one Redis), sentinel (Sentinels, which know the master of masterName) or cluster (some nodes of a Redis Cluster)."`
	Addr             string         `koanf:"addr" doc:"host:port of the Redis. Of counters: maxmemory-policy noeviction, appendonly yes. Of cache: another one, maxmemory-policy volatile-ttl, nothing on disk; without an address each gateway keeps stored answers to itself. Of mode single; with the others it counts as one of addrs."`
	Addrs            []string       `koanf:"addrs" doc:"host:port of the Sentinels, or of some nodes of the Cluster; in place of addr."`
	MasterName       string         `koanf:"masterName" doc:"Name by which the Sentinels know the master."`
	SentinelUsername string         `koanf:"sentinelUsername" doc:"User of the Sentinels' ACL; empty is the default user."`
	SentinelPassword service.Secret `koanf:"sentinelPassword" doc:"Password of the Sentinels, where they have one."`
	Username         string         `koanf:"username" doc:"User of the Redis ACL; empty is the default user."`
	Password         service.Secret `koanf:"password" doc:"Password of that user."`
	DB               int            `koanf:"db" doc:"Number of the database; a Cluster has 0 only."`
	KeyPrefix        string         `koanf:"keyPrefix" doc:"Starts the name of every key, so that deployments can share a Redis; all gateways of one deployment have the same."`
	PoolSize         int            `koanf:"poolSize" doc:"Most connections of one gateway process."`
	TLS              RedisTLS       `koanf:"tls"`
}

// RedisTLS is TLS to Redis.
type RedisTLS struct {
	Enabled    bool   `koanf:"enabled" doc:"Whether to use TLS."`
	CAFile     string `koanf:"caFile" doc:"PEM file of the certificate authorities trusted for it; empty means the system's."`
	ServerName string `koanf:"serverName" doc:"Name expected in the server's certificate; empty means the host of addr."`
}

// Usage says where usage events are kept for search.
type Usage struct {
	Store string `koanf:"store" doc:"Where usage events are searched: elasticsearch or postgres."`
}

// Elasticsearch is the usage store for analysts.
type Elasticsearch struct {
	URL         string         `koanf:"url" doc:"http:// or https:// address of Elasticsearch or OpenSearch."`
	Flavor      string         `koanf:"flavor" doc:"Which of the two it is: elasticsearch or opensearch."`
	Username    string         `koanf:"username" doc:"User for basic authentication."`
	Password    service.Secret `koanf:"password" doc:"Password of that user."`
	APIKey      service.Secret `koanf:"apiKey" doc:"API key, in place of user and password."`
	IndexPrefix string         `koanf:"indexPrefix" doc:"Name of the daily indices before -YYYY.MM.DD, lower case; no deployment on one server may have a prefix that continues another's."`
}

// Default returns the configuration of a process told nothing: local servers
// on their usual ports, no credentials.
func Default() Config {
	return Config{
		Log:      Log{Level: "info", Format: "text"},
		Admin:    service.DefaultAdminConfig(),
		Stop:     Stop{Timeout: service.DefaultStopTimeout},
		Postgres: Postgres{URL: "postgres://sluice@127.0.0.1:5432/sluice", MaxConns: 10},
		Redis: Redis{
			Counters: RedisConnection{Mode: RedisSingle, Addr: "127.0.0.1:6379", KeyPrefix: "sluice:", PoolSize: 64},
			Cache:    RedisConnection{Mode: RedisSingle, KeyPrefix: "cache:", PoolSize: 64},
		},
		Usage:         Usage{Store: UsageElasticsearch},
		Elasticsearch: Elasticsearch{URL: "http://127.0.0.1:9200", Flavor: elastic.FlavorElasticsearch, IndexPrefix: elastic.DefaultIndexPrefix},
		Kafka:         stream.DefaultConfig(),
		Controlplane:  controlplane.DefaultConfig(),
		Relay:         relay.DefaultConfig(),
		Gateway:       Gateway{Config: gateway.DefaultConfig()},
		Keeper:        keeper.DefaultConfig(),
		Billing:       billing.DefaultConfig(),
		Portal:        portal.DefaultConfig(),
		Indexer:       indexer.DefaultConfig(),
		Webhooks:      webhooks.DefaultConfig(),
		Demo:          demo.DefaultConfig(),
	}
}

// Values of redis.counters.mode.
const (
	RedisSingle   = "single"
	RedisSentinel = "sentinel"
	RedisCluster  = "cluster"
)

// Given reports a connection that has an address.
func (c *RedisConnection) Given() bool { return c.Addr != "" || len(c.Addrs) > 0 }

// Addresses are those to connect to: addrs, or where there are none, addr.
func (c *RedisConnection) Addresses() []string {
	if len(c.Addrs) > 0 {
		return c.Addrs
	}
	return []string{c.Addr}
}

// Values of usage.store.
const (
	UsageElasticsearch = "elasticsearch"
	UsagePostgres      = "postgres"
)
