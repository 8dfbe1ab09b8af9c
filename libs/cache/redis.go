package cache

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ConfigureRedis sets on o what a Cache expects of its client: deadlines of calls reach the connection, and no dialling
// or waiting outlives a call by much. It leaves addresses, credentials, TLS and pool sizes alone. timeout is
// Options.RedisTimeout; 0 is its default.
func ConfigureRedis(o *redis.UniversalOptions, timeout time.Duration) {
	timeout = or(timeout, 100*time.Millisecond)
	o.ContextTimeoutEnabled = true
	o.DialTimeout = timeout
	o.ReadTimeout = timeout
	o.WriteTimeout = timeout
	o.PoolTimeout = timeout
	o.DialerRetries = 1
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// honoursDeadlines refuses clients on which a silent Redis would hold readers for seconds.
func honoursDeadlines(c redis.UniversalClient) bool {
	switch c := c.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	}
	return true
}
