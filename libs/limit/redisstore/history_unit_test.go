package redisstore

import (
	"testing"

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
	if o.Timeout == 0 {
		o.Timeout = generous
	}
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
	client := newClient(t, miniredis.RunT(t).Addr())
	checkHistories(t, newStore(t, client, Options{KeyPrefix: "h:"}), client)
}
