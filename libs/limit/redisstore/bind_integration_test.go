//go:build integration

package redisstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// A Redis is killed and started again under load, and its append-only file brings
// the epoch of the process before back. That process charged; the one after it, on
// old connections or new ones, charges nothing: its file may lack units.
func TestEpochDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedisWith(t, devserver.RedisOptions{AppendOnly: true})
	client := newClient(t, server.Addr())
	direct := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer direct.Close()
	if err := direct.ConfigSet(t.Context(), "appendfsync", "always").Err(); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, client, Options{Budget: 2 * time.Second})
	if err := killed(t, s, server, func() string { return direct.Get(t.Context(), "epoch").Val() }, quota(1<<40)); err != nil {
		t.Fatal(err)
	}
}

// killed charges a quota from many goroutines, kills the server and starts it
// again, and demands that nothing was charged after that.
func killed(t *testing.T, s *Store, server *devserver.Redis, epochNow func() string, c limit.Counter) error {
	t.Helper()
	var charged atomic.Int64
	charge := func() error {
		d, err := s.Decide(t.Context(), []limit.Counter{c})
		if err == nil && d.Allowed {
			charged.Add(1)
		}
		return err
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	for range 16 {
		load.Go(func() {
			for ctx.Err() == nil {
				_ = charge()
			}
		})
	}
	servertest.Eventually(t, time.Minute, "charges", func() bool { return charged.Load() > 500 })
	before := epochNow()
	server.Kill()
	start, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := server.Start(start); err != nil {
		return err
	}
	after := charged.Load()
	now := ""
	servertest.Eventually(t, time.Minute, "the epoch to be read", func() bool { now = epochNow(); return now != "" })
	if now != before {
		t.Fatalf("epoch %q, want that of the file, %q", now, before)
	}
	restoring := s.Stats().Restoring
	servertest.Eventually(t, time.Minute, "calls to the process after", func() bool { return s.Stats().Restoring > restoring+200 })
	stop()
	load.Wait()
	if n := charged.Load(); n != after {
		t.Errorf("%d charges by a process whose quotas nobody restored", n-after)
	}
	if err := charge(); !errors.Is(err, limit.ErrRestoring) {
		t.Errorf("error %v, want ErrRestoring", err)
	}
	return nil
}

// The same of a master of a Cluster; another master goes on.
func TestEpochDiesWithItsMaster(t *testing.T) {
	t.Parallel()
	c := servertest.StartRedisCluster(t)
	client := clusterClient(t, c)
	s := newStore(t, client, Options{Budget: 2 * time.Second})
	mine, other := longCounter(limit.RenewingQuota, 1<<40), longCounter(limit.RenewingQuota, 1<<40)
	mine.Key, other.Key = tagOn(0, 3)+":t::m:quota", tagOn(1, 3)+":t::m:quota"
	key := epoch.Key("", true, epoch.SlotOf(mine.Key))
	node := newClient(t, c.Nodes[0].Addr())
	if err := killed(t, s, c.Nodes[0], func() string { return node.Get(t.Context(), key).Val() }, mine); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Decide(t.Context(), []limit.Counter{other}); err != nil {
		t.Errorf("a master that lost nothing: %v", err)
	}
}

// Behind Sentinels the promoted replica has the old master's epoch, and charges
// nothing under it.
func TestEpochIsNotThePromotedReplicas(t *testing.T) {
	t.Parallel()
	master := servertest.StartRedisWith(t, devserver.RedisOptions{Args: []string{"--repl-diskless-sync-delay", "0"}})
	replica := servertest.StartRedisWith(t, devserver.RedisOptions{Args: []string{"--replicaof", "127.0.0.1 " + strconv.Itoa(master.Port())}})
	sentinel := servertest.StartSentinel(t, master.Port())
	o := &redis.UniversalOptions{Addrs: []string{sentinel}, MasterName: servertest.SentinelMaster}
	Configure(o, generous)
	client := redis.NewUniversalClient(o)
	defer client.Close()
	copied := newClient(t, replica.Addr())
	s := newStore(t, client, Options{Budget: 2 * time.Second})
	c := quota(1 << 40)
	for range 20 {
		if _, err := s.Decide(t.Context(), []limit.Counter{c}); err != nil {
			t.Fatal(err)
		}
	}
	before := client.Get(t.Context(), "epoch").Val()
	servertest.Eventually(t, time.Minute, "the replica to have the epoch, and Sentinel to know it", func() bool {
		known, err := redis.NewSentinelClient(&redis.Options{Addr: sentinel}).Replicas(t.Context(), servertest.SentinelMaster).Result()
		return err == nil && len(known) == 1 && copied.Get(t.Context(), "epoch").Val() == before
	})
	master.Kill()
	servertest.Eventually(t, time.Minute, "the promoted replica to be asked", func() bool {
		_, err := s.Decide(t.Context(), []limit.Counter{c})
		if err == nil {
			t.Fatal("charged by a process whose quotas nobody restored")
		}
		return errors.Is(err, limit.ErrRestoring)
	})
	if after := copied.Get(t.Context(), "epoch").Val(); after != before {
		t.Errorf("epoch %q, want the copy of %q", after, before)
	}
}

// Behind a proxy the connection says nothing: the script asks which process runs it,
// and charges nothing under another one's epoch.
func TestProxiedCallsAskWhichProcessItIs(t *testing.T) {
	t.Parallel()
	addr, prefix := servertest.Redis(t)
	client := newClient(t, addr)
	s := newStore(t, client, Options{KeyPrefix: prefix, Proxied: true})
	if d, err := s.Decide(t.Context(), []limit.Counter{quota(10)}); err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	whole := client.Get(t.Context(), prefix+"epoch").Val()
	other := strings.Repeat("0", epoch.RunIDLength) + whole[epoch.RunIDLength:]
	if err := client.Set(t.Context(), prefix+"epoch", other, 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.servers.expect([]int{0}, other)
	if _, err := s.Decide(t.Context(), []limit.Counter{quota(10)}); !errors.Is(err, limit.ErrRestoring) {
		t.Errorf("error %v, want ErrRestoring", err)
	}
}
