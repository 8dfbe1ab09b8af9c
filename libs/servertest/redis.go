package servertest

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/devserver/withservers"
)

// What the Redis client would print to standard error (each connection it could
// not make, by the hundred where a test takes Redis away) goes to slog, below
// what is shown.
func init() { redis.SetLogger(clientLog{}) }

type clientLog struct{}

// Printf is the client library's logging interface.
func (clientLog) Printf(ctx context.Context, format string, args ...any) {
	if log := slog.Default(); log.Enabled(ctx, slog.LevelDebug) {
		log.DebugContext(ctx, fmt.Sprintf(format, args...), "client", "redis")
	}
}

// Redis returns the shared server's host:port and a key prefix of the test's own ("t0123456789ab:"). Keys that begin
// with it are deleted after the test.
func Redis(t testing.TB) (addr, keyPrefix string) {
	t.Helper()
	addr = mustEnv(t, withservers.EnvRedis)
	keyPrefix = unique() + ":"
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
		defer cancel()
		if err := deleteKeys(ctx, addr, keyPrefix); err != nil {
			t.Errorf("delete keys %s*: %v", keyPrefix, err)
		}
	})
	return addr, keyPrefix
}

func deleteKeys(ctx context.Context, addr, prefix string) error {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	keys := client.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := client.Unlink(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return keys.Err()
}
