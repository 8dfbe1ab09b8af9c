package gateway

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/libs/spool"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify/jwt"
	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
)

// Config configures a gateway.
type Config struct {
	ID           string             `koanf:"id" doc:"Name of this instance in usage events; unique among the gateways. Default: the host's name."`
	Listen       string             `koanf:"listen" doc:"Address that clients connect to."`
	H2C          bool               `koanf:"h2c" doc:"Also speak HTTP/2 without TLS, for load balancers that want it."`
	Identity     IdentityConfig     `koanf:"identity"`
	Answers      AnswersConfig      `koanf:"answers"`
	Explain      ExplainConfig      `koanf:"explain"`
	Spool        SpoolConfig        `koanf:"spool"`
	Store        StoreConfig        `koanf:"store"`
	Reservations ReservationsConfig `koanf:"reservations"`
	Cache        CacheConfig        `koanf:"cache"`
	Server       ServerConfig       `koanf:"server"`
	Upstream     proxy.Config       `koanf:"upstream"`
	DrainTimeout time.Duration      `koanf:"drainTimeout" doc:"How long a stop waits for requests under way before it cuts them."`
}

// IdentityConfig says whose word about identities is taken.
type IdentityConfig struct {
	TrustedCIDRs []string      `koanf:"trustedCidrs" doc:"Peers (CIDR) whose X-Tenant-Id, X-User-Id, X-Application-Id, Sluice-Cost and X-Forwarded-* headers are believed. From all others they are removed. Empty: nobody's."`
	MaxStaleness time.Duration `koanf:"maxStaleness" doc:"How old the table of API keys may be before services with refuseStaleKeys refuse keys (503). 0: they never do."`
	JWT          JWTConfig     `koanf:"jwt"`
}

// JWTConfig says whose tokens prove an identity.
type JWTConfig struct {
	jwt.Config `koanf:",squash"`

	ForwardToken bool `koanf:"forwardToken" doc:"Whether a token that proved the identity is forwarded to the service too."`
}

// Issuer is one signer of tokens, Claims where its tokens carry the identity.
type (
	Issuer = jwt.Issuer
	Claims = jwt.Claims
)

// AnswersConfig shapes what clients are told.
type AnswersConfig struct {
	RetryAfterJitter float64 `koanf:"retryAfterJitter" doc:"Largest share of the wait, 0 to 1, that is added to Retry-After so that clients denied together do not come back together; at least 1s and at most 30s where it is not 0."`
	LegacyHeaders    bool    `koanf:"legacyHeaders" doc:"Also send X-RateLimit-Limit, -Remaining and -Reset (seconds), of the tightest policy. A service can ask for them alone (legacyHeaders in the catalog)."`
}

// ExplainConfig says who may ask why a request would pass or not.
type ExplainConfig struct {
	Tokens []identify.OperatorToken `koanf:"tokens" doc:"Bearer tokens that may call POST /v1/explain on the admin port. Without any, every call is refused."`
}

func (c *ExplainConfig) callers() (identify.Operators, error) {
	return identify.NewOperators("gateway.explain.tokens", c.Tokens)
}

func (c *ReservationsConfig) operators() (identify.Operators, error) {
	return identify.NewOperators("gateway.reservations.tokens", c.Tokens)
}

// SpoolConfig is where usage events wait for Kafka.
type SpoolConfig struct {
	Dir          string        `koanf:"dir" doc:"Folder of the spool; on a volume that outlives the process, one a gateway."`
	SizeBytes    int64         `koanf:"sizeBytes" doc:"Size of the spool on disk; when full it drops the oldest events and counts them."`
	DrainTimeout time.Duration `koanf:"drainTimeout" doc:"How long a stop waits for the spool to be shipped; what is left is shipped by the next start."`
}

// StoreConfig is how the counters in Redis are used.
type StoreConfig struct {
	// KeyPrefix is set from redis.counters.keyPrefix: it belongs to the connection.
	KeyPrefix string        `koanf:"-"`
	Budget    time.Duration `koanf:"budget" doc:"How long a decision waits for Redis before the rule's onStoreLoss holds; Redis charges nothing later than that."`
	Timeout   time.Duration `koanf:"timeout" doc:"How long a connection to Redis is kept for an answer that is late."`
	Proxied   bool          `koanf:"proxied" doc:"Between the gateway and Redis is a proxy that speaks its protocol and may send a connection's commands to another server: each call with quotas asks Redis which process it is, about 4 µs of its time. Without it quotas could be charged on a Redis that lost them."`
}

// ReservationsConfig bounds reservations.
type ReservationsConfig struct {
	MaxOpen int                      `koanf:"maxOpen" doc:"How many reservations a tenant may have open at once (429 beyond), 1 to 1000000; each takes 1.2 KB of Redis. The same on all gateways."`
	Tokens  []identify.OperatorToken `koanf:"tokens" doc:"Bearer tokens of operators, who may list and release any tenant's reservations on the admin port. Without any, every call is refused."`
}

// ServerConfig bounds what clients may take.
type ServerConfig struct {
	ReadHeaderTimeout time.Duration `koanf:"readHeaderTimeout" doc:"How long a client may take to send its headers."`
	IdleTimeout       time.Duration `koanf:"idleTimeout" doc:"How long an idle client connection is kept."`
	MaxHeaderBytes    int           `koanf:"maxHeaderBytes" doc:"Largest header a client may send (431 beyond)."`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Listen:       ":8080",
		Identity:     IdentityConfig{MaxStaleness: time.Minute, JWT: JWTConfig{ForwardToken: true}},
		Answers:      AnswersConfig{RetryAfterJitter: 0.1},
		Spool:        SpoolConfig{Dir: "data/spool", SizeBytes: 64 << 20, DrainTimeout: 3 * time.Second},
		Store:        StoreConfig{KeyPrefix: "sluice:", Budget: redisstore.DefaultBudget, Timeout: redisstore.DefaultCallTimeout},
		Reservations: ReservationsConfig{MaxOpen: reserve.DefaultMaxOpen},
		Cache:        DefaultCacheConfig(),
		Server:       ServerConfig{ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10},
		Upstream:     proxy.Config{DialTimeout: 3 * time.Second, ResponseTimeout: time.Minute, IdleTimeout: 90 * time.Second, MaxIdlePerHost: 256},
		DrainTimeout: 10 * time.Second,
	}
}

// mostOpen is the most that maxOpen may be: a tenant's could then take 1.2 GB.
const mostOpen = 1_000_000

// Check returns what New would refuse of the configuration, each mistake with
// its key, nil without one.
func (c Config) Check() error {
	var errs []error
	if c.Listen == "" {
		errs = append(errs, errors.New("gateway.listen is empty: give host:port"))
	}
	if c.Spool.Dir == "" {
		errs = append(errs, errors.New("gateway.spool.dir is empty: give a folder of this gateway's own"))
	} else if err := (spool.Options{Dir: c.Spool.Dir, SizeBytes: c.Spool.SizeBytes}).Check(); err != nil {
		errs = append(errs, fmt.Errorf("gateway.spool.sizeBytes: %w", err))
	}
	for name, d := range map[string]time.Duration{
		"store.budget": c.Store.Budget, "store.timeout": c.Store.Timeout, "drainTimeout": c.DrainTimeout, "spool.drainTimeout": c.Spool.DrainTimeout,
		"server.readHeaderTimeout": c.Server.ReadHeaderTimeout, "server.idleTimeout": c.Server.IdleTimeout,
		"upstream.dialTimeout": c.Upstream.DialTimeout, "upstream.responseTimeout": c.Upstream.ResponseTimeout,
		"upstream.idleTimeout": c.Upstream.IdleTimeout,
	} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("gateway.%s must be more than 0, not %s", name, d))
		}
	}
	if c.Store.Timeout < c.Store.Budget {
		errs = append(errs, fmt.Errorf("gateway.store.timeout must be at least gateway.store.budget (%s), not %s", c.Store.Budget, c.Store.Timeout))
	}
	if n := c.Reservations.MaxOpen; n < 1 || n > mostOpen {
		errs = append(errs, fmt.Errorf("gateway.reservations.maxOpen must be 1 to %d, not %d", mostOpen, n))
	}
	_, err := c.Explain.callers()
	_, wrong := c.Reservations.operators()
	errs = append(errs, wrong, c.Answers.check(), c.Identity.check(), c.Cache.check(), err)
	return errors.Join(errs...)
}

func (c *IdentityConfig) check() error {
	_, err := c.prefixes()
	if c.MaxStaleness < 0 {
		err = errors.Join(err, fmt.Errorf("gateway.identity.maxStaleness must not be negative, not %s", c.MaxStaleness))
	}
	if wrong := c.JWT.Check(); wrong != nil {
		err = errors.Join(err, fmt.Errorf("gateway.identity.jwt: %w", wrong))
	}
	return err
}

func (c *AnswersConfig) check() error {
	// Written so that NaN fails too.
	if !(c.RetryAfterJitter >= 0 && c.RetryAfterJitter <= 1) {
		return fmt.Errorf("gateway.answers.retryAfterJitter must be from 0 to 1, not %v", c.RetryAfterJitter)
	}
	return nil
}

// name is the instance's name: as configured, else the host's.
func (c *Config) name() (string, error) {
	if c.ID != "" {
		return c.ID, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("gateway.id is empty and the host has no name: %w", err)
	}
	return host, nil
}

func (c *IdentityConfig) prefixes() ([]netip.Prefix, error) {
	all := make([]netip.Prefix, 0, len(c.TrustedCIDRs))
	for _, text := range c.TrustedCIDRs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("gateway.identity.trustedCidrs: %q is no CIDR such as 10.0.0.0/8: %w", text, err)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}
