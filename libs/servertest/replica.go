package servertest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/devserver"
)

// Detour makes a Redis a replica of what was its replica, and a master again: it
// goes on with its run id, and with what the other had. What it is charged in
// forgotten, once the replica has left it, is gone.
func Detour(t testing.TB, server *devserver.Redis, forgotten func()) {
	t.Helper()
	here := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer here.Close()
	text(t, here, "config", "set", "repl-diskless-sync-delay", "0")
	replica := StartRedisWith(t, devserver.RedisOptions{Args: []string{
		"--replicaof", "127.0.0.1 " + strconv.Itoa(server.Port()), "--repl-diskless-sync-delay", "0",
	}})
	there := redis.NewClient(&redis.Options{Addr: replica.Addr()})
	defer there.Close()
	Follows(t, there)
	text(t, there, "replicaof", "no", "one")
	forgotten()
	text(t, here, "replicaof", "127.0.0.1", replica.Port())
	Follows(t, here)
	text(t, here, "replicaof", "no", "one")
}

// Follows waits until a Redis that was made a replica has its master's data, and follows it.
func Follows(t testing.TB, replica redis.Cmdable) {
	t.Helper()
	Eventually(t, time.Minute, "the replica to follow", func() bool {
		info, err := replica.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
	})
}
