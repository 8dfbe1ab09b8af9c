package redisstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Configure sets on o what the store expects of a client: connections that
// outlast a decision's budget, so that late answers are read and a slow moment
// does not become a storm of dialling, that are read once more when their time
// is up, and one attempt to dial a call. It
// leaves addresses, credentials, TLS and pool sizes alone. timeout is how long
// a connection waits for an answer, at least DefaultCallTimeout.
func Configure(o *redis.UniversalOptions, timeout time.Duration) {
	timeout = max(timeout, DefaultCallTimeout)
	o.ContextTimeoutEnabled = true
	o.DialTimeout = timeout
	o.ReadTimeout = timeout
	o.WriteTimeout = timeout
	o.PoolTimeout = timeout
	o.DialerRetries = 1
	o.Dialer = lookTwice(o)
	// Neither CLIENT SETINFO nor a hand-over protocol in a connection's set-up:
	// each is a round trip that a request may be waiting for.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

var errNoDeadlines = errors.New("redis client ignores deadlines: its options need ContextTimeoutEnabled, see redisstore.Configure")

// checkClient refuses clients on which a silent Redis would hold a request for
// seconds. Retries need no check: a charge opts out of them itself.
func checkClient(c redis.UniversalClient) error {
	switch c := c.(type) {
	case *redis.Client:
		if !c.Options().ContextTimeoutEnabled {
			return errNoDeadlines
		}
	case *redis.ClusterClient:
		if !c.Options().ContextTimeoutEnabled {
			return errNoDeadlines
		}
	default:
		return fmt.Errorf("redis client is a %T; want one of one Redis, of Sentinels or of a Cluster", c)
	}
	return nil
}
