//go:build integration

package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// three is a decision over one counter of each algorithm.
func three() []limit.Counter { return []limit.Counter{gcra(100, 100), fixed(100), quota(100)} }

// used sums what three counters show as used.
func used(t *testing.T, s *Store) (sum int64) {
	t.Helper()
	look := three()
	for i := range look {
		look[i].Cost = 0
	}
	d, err := s.Decide(t.Context(), look)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.States {
		sum += d.States[i].Limit - d.States[i].Remaining
	}
	return sum
}

// Where Redis takes no writes, no counter of a decision is charged, and writes
// taken again find the counters as they were.
func TestRefusedWritesChargeNothing(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]struct{ on, off []any }{
		"OOM":        {[]any{"config", "set", "maxmemory", "1"}, []any{"config", "set", "maxmemory", "0"}},
		"READONLY":   {[]any{"replicaof", "127.0.0.1", "1"}, []any{"replicaof", "no", "one"}},
		"NOREPLICAS": {[]any{"config", "set", "min-replicas-to-write", "1"}, []any{"config", "set", "min-replicas-to-write", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servertest.StartRedis(t)
			admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
			defer admin.Close()
			s := newStore(t, newClient(t, server.Addr()), Options{Budget: 500 * time.Millisecond})
			if _, err := s.Decide(t.Context(), three()); err != nil {
				t.Fatal(err)
			}
			if err := admin.Do(t.Context(), refuse.on...).Err(); err != nil {
				t.Fatal(err)
			}
			_, err := s.Decide(t.Context(), three())
			// A try that is repeated to the end of the budget may leave no time to say why.
			if !errors.Is(err, limit.ErrUnavailable) || !strings.Contains(err.Error(), name) && !errors.Is(err, errNoAnswer) {
				t.Errorf("error %v", err)
			}
			if err := admin.Do(t.Context(), refuse.off...).Err(); err != nil {
				t.Fatal(err)
			}
			// gcra may have got its unit back meanwhile, 600 ms after the charge. A last
			// try that found writes taken again was for nobody, and is given back.
			servertest.Eventually(t, 60*time.Second, "the units of one charge of three counters", func() bool {
				n := used(t, s)
				return n == 2 || n == 3
			})
		})
	}
}

// Redis stopped and started again: errors come fast, and the store is back by
// itself within a second or so.
// Nobody comes while Redis is away and returns: the store finds it all the same.
func TestRedisIsFoundAgainWithoutTraffic(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	s := newStore(t, newStoreClient(t, server.Addr()), Options{Budget: DefaultBudget})
	decide := func() error {
		_, err := s.Decide(t.Context(), []limit.Counter{quota(1 << 40)})
		return err
	}
	servertest.Eventually(t, 60*time.Second, "the first decision", func() bool { return decide() == nil })
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, 60*time.Second, "the breaker to open", func() bool { _ = decide(); return !s.Available() })
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, 60*time.Second, "the store to be available again", s.Available)
}

func TestRestartedRedisIsFoundAgain(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	s := newStore(t, newStoreClient(t, server.Addr()), Options{Budget: DefaultBudget})
	decide := func() error {
		_, err := s.Decide(t.Context(), []limit.Counter{quota(1 << 40)})
		return err
	}
	servertest.Eventually(t, 60*time.Second, "the first decision", func() bool { return decide() == nil })
	server.Kill()
	servertest.Eventually(t, 60*time.Second, "the breaker to open", func() bool {
		return errors.Is(decide(), limit.ErrUnavailable) && !s.Available()
	})
	// Long enough away that go-redis's pool has given up dialling, too. Calls
	// fail at once all the while; a busy machine may hold up a few.
	away, slow := time.Now(), 0
	servertest.Eventually(t, 60*time.Second, "three seconds of outage", func() bool {
		started := time.Now()
		if err := decide(); !errors.Is(err, limit.ErrUnavailable) {
			t.Fatalf("error %v", err)
		}
		if time.Since(started) > DefaultBudget {
			slow++
		}
		return time.Since(away) > 3*time.Second
	})
	if slow > 5 {
		t.Errorf("%d calls took longer than %s", slow, DefaultBudget)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := server.Start(ctx); err != nil {
		t.Fatal(err)
	}
	declareWhole(t, newClient(t, server.Addr()), "")
	back := time.Now()
	servertest.Eventually(t, 60*time.Second, "the store to be back", func() bool { return decide() == nil })
	if took := time.Since(back); took > 2*time.Second {
		t.Errorf("back %s after Redis", took)
	}
}

// newStoreClient has the time-outs of production rather than newClient's.
func newStoreClient(t testing.TB, addr string) redis.UniversalClient {
	t.Helper()
	o := &redis.UniversalOptions{Addrs: []string{addr}}
	Configure(o, DefaultBudget)
	client := redis.NewUniversalClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// On Redis itself, too, a key that is no counter fails its own decision only.
func TestBrokenKeysOnRedis(t *testing.T) {
	t.Parallel()
	addr, prefix := servertest.Redis(t)
	client := newClient(t, addr)
	s := newStore(t, client, Options{KeyPrefix: prefix})
	if err := client.LPush(t.Context(), prefix+"list", "x").Err(); err != nil {
		t.Fatal(err)
	}
	texts := []string{"", "x", "-1", "1.5", "900719925474099300", "1:2:3:4", "5:9:7", ":", "nan", "inf"}
	for _, text := range texts {
		if err := client.Set(t.Context(), prefix+"text"+text, text, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []limit.Counter{gcra(10, 10), fixed(10)} {
		for _, name := range append(texts, "list") {
			bad.Key = "text" + name
			if name == "list" {
				bad.Key = name
			}
			if _, err := s.Decide(t.Context(), append(three(), bad)); !errors.Is(err, limit.ErrCounterBroken) {
				t.Errorf("%s of %q: error %v", bad.Algorithm, name, err)
			}
		}
	}
	if n := used(t, s); n != 0 {
		t.Errorf("%d units charged", n)
	}
}

// Lua reads more texts as numbers than INCRBY takes: such a key is found before
// the first write, so that nothing of its decision is charged and no other
// decision of the call is disturbed.
func TestNumbersAreReadAsRedisReadsThem(t *testing.T) {
	t.Parallel()
	addr, prefix := servertest.Redis(t)
	client := newClient(t, addr)
	s := newStore(t, client, Options{KeyPrefix: prefix})
	charge := func() error { _, err := s.Decide(t.Context(), three()); return err }
	if err := charge(); err != nil {
		t.Fatal(err)
	}
	keys, err := client.Keys(t.Context(), prefix+"*:quota:*:c").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("%q, %v: want the one number of the quota", keys, err)
	}
	for _, text := range []string{"1e0", "1.0", "01", "0x1", " 1", "1 ", "+1", "-0", "1\n", "nan", "inf", ""} {
		if err := client.Set(t.Context(), keys[0], text, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := charge(); !errors.Is(err, limit.ErrCounterBroken) {
			t.Errorf("%q: error %v", text, err)
		}
		if got := client.Get(t.Context(), keys[0]).Val(); got != text {
			t.Errorf("%q is now %q", text, got)
		}
	}
	if err := client.Set(t.Context(), keys[0], "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n := used(t, s); n != 3 {
		t.Errorf("%d units are charged, want the 3 of the first decision", n)
	}
}
