package redisstore

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// newClient returns a client as the gateway makes it, on one server.
func newClient(t testing.TB, addr string) redis.UniversalClient {
	t.Helper()
	o := &redis.UniversalOptions{Addrs: []string{addr}}
	Configure(o, generous)
	client := redis.NewUniversalClient(o)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func newStore(t testing.TB, client redis.UniversalClient, o Options) *Store {
	t.Helper()
	if o.Budget == 0 {
		o.Budget = generous
	}
	declareWhole(t, client, o.KeyPrefix)
	s, err := New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// The script must run on the in-process server of `make run` too, and say there
// what it says on Redis.
func TestScriptEqualsModelOnMiniredis(t *testing.T) {
	t.Parallel()
	checkHistories(t, newClient(t, miniredis.RunT(t).Addr()), "h:", everyAlgorithm...)
}

func guess(s *Store) time.Time {
	t, _ := s.clock.redis(s.now())
	return t
}
