//go:build integration

package redisstore

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// cluster is three masters that share the slots.
type cluster struct {
	nodes   []*devserver.Redis
	clients []*redis.Client
}

// startCluster starts three masters, each with a third of the slots, and
// returns when all of them say that all is well.
func startCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{}
	for range 3 {
		node := servertest.StartRedisWith(t, devserver.RedisOptions{Args: []string{
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000",
			"--cluster-port", strconv.Itoa(freePort(t)),
		}})
		client := redis.NewClient(&redis.Options{Addr: node.Addr()})
		t.Cleanup(func() { _ = client.Close() })
		c.nodes, c.clients = append(c.nodes, node), append(c.clients, client)
	}
	ctx := t.Context()
	for i, client := range c.clients {
		if err := client.ClusterAddSlotsRange(ctx, numSlots*i/3, numSlots*(i+1)/3-1).Err(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			continue
		}
		bus, err := client.ConfigGet(ctx, "cluster-port").Result()
		if err != nil {
			t.Fatal(err)
		}
		meet := []any{"cluster", "meet", "127.0.0.1", c.nodes[i].Port(), bus["cluster-port"]}
		if err := c.clients[0].Do(ctx, meet...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	servertest.Eventually(t, 30*time.Second, "the cluster to be whole", func() bool {
		for _, client := range c.clients {
			shards, err := client.ClusterShards(ctx).Result()
			info, infoErr := client.ClusterInfo(ctx).Result()
			if err != nil || infoErr != nil || len(shards) != 3 || !containsState(info) {
				return false
			}
		}
		return true
	})
	return c
}

func containsState(info string) bool {
	const ok = "cluster_state:ok"
	return len(info) >= len(ok) && info[:len(ok)] == ok
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// client returns a cluster client as the gateway makes it.
func (c *cluster) client(t testing.TB) *redis.ClusterClient {
	t.Helper()
	o := &redis.UniversalOptions{IsClusterMode: true}
	for _, node := range c.nodes {
		o.Addrs = append(o.Addrs, node.Addr())
	}
	Configure(o, generous)
	client := redis.NewUniversalClient(o).(*redis.ClusterClient)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// tagOn returns an owner whose keys lie on a node.
func tagOn(node, n int) string {
	for i := 0; ; i++ {
		tag := fmt.Sprintf("{t:n%d-%d}", n, i)
		if slot := slotOf(tag); slot >= numSlots*node/3 && slot < numSlots*(node+1)/3 {
			return tag
		}
	}
}

func TestSlotsAreRedis(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: startCluster(t).nodes[0].Addr()})
	defer client.Close()
	for _, key := range []string{"a", "{t:acme}:x", "x{t:acme}", "{}x", "{", "}{a}", "{a}{b}", "", "p:{s:pay}:e:GET%20/x"} {
		want, err := client.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := slotOf(key); int64(got) != want {
			t.Errorf("slot of %q is %d, Redis says %d", key, got, want)
		}
	}
}

// spread are counters of one algorithm on all three nodes.
func spread(c limit.Counter, n int) []limit.Counter {
	counters := make([]limit.Counter, 3)
	for node := range counters {
		counters[node] = c
		counters[node].Key = tagOn(node, n) + ":t::m:" + c.Algorithm.String()
	}
	return counters
}

// A request whose counters lie in several slots is all or nothing: what one
// slot charged is given back when another denies.
func TestSlotsAreAllOrNothing(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	s := newStore(t, c.client(t), Options{})
	for i, algorithm := range everyAlgorithm {
		counters := spread(longCounter(algorithm, 10), i)
		counters[2] = capacity(counters[2], 3)
		passed := 0
		for range 10 {
			d, err := s.Decide(t.Context(), counters)
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				passed++
				continue
			}
			for j, st := range d.States[:2] {
				if st.Remaining != 7 {
					t.Fatalf("%s: counter %d has %d left after what was denied elsewhere: %+v", algorithm, j, st.Remaining, st)
				}
			}
			if d.States[2].Allowed || d.States[2].Remaining != 0 {
				t.Fatalf("%s: %+v", algorithm, d.States[2])
			}
		}
		if passed != 3 {
			t.Errorf("%s: %d passed, want 3", algorithm, passed)
		}
		if left := remaining(t, s, counters); left[0] != 7 || left[1] != 7 || left[2] != 0 {
			t.Errorf("%s: %v left", algorithm, left)
		}
	}
}

// A slot on its way to another node: nothing is lost, nothing counted twice.
func TestSlotMigration(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	s := newStore(t, c.client(t), Options{})
	counter := longCounter(limit.FixedWindow, 1<<40)
	counter.Key = tagOn(0, 99) + ":t::m:fixed"
	other := longCounter(limit.SlidingWindow, 1<<40)
	other.Key = tagOn(0, 99) + ":t::m:sliding"
	pair := []limit.Counter{counter, other}
	ctx := t.Context()
	ids := make([]string, 2)
	for i := range ids {
		id, err := c.clients[i].Do(ctx, "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = id
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var passed [4]int64
	for i := range passed {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				d, err := s.Decide(ctx, pair)
				if err != nil && !errors.Is(err, limit.ErrUnavailable) {
					t.Error(err)
					return
				}
				if err == nil && d.Allowed {
					passed[i]++
				}
			}
		})
	}
	slot := slotOf(counter.Key)
	must := func(client *redis.Client, args ...any) {
		t.Helper()
		if err := client.Do(ctx, args...).Err(); err != nil {
			t.Error(err)
		}
	}
	servertest.Eventually(t, 10*time.Second, "traffic", func() bool { return remaining(t, s, pair)[0] < 1<<40-50 })
	must(c.clients[1], "cluster", "setslot", slot, "importing", ids[0])
	must(c.clients[0], "cluster", "setslot", slot, "migrating", ids[1])
	// One key there, one here: every call is refused with TRYAGAIN.
	must(c.clients[0], "migrate", "127.0.0.1", c.nodes[1].Port(), counter.Key, 0, 1000)
	must(c.clients[0], "migrate", "127.0.0.1", c.nodes[1].Port(), other.Key, 0, 1000)
	for i := range 2 {
		must(c.clients[1-i], "cluster", "setslot", slot, "node", ids[1])
	}
	before := remaining(t, s, pair)[0]
	servertest.Eventually(t, 10*time.Second, "traffic after it", func() bool { return remaining(t, s, pair)[0] < before-50 })
	close(stop)
	wg.Wait()
	var sum int64
	for _, n := range passed {
		sum += n
	}
	left := remaining(t, s, pair)
	if used := 1<<40 - left[0]; used != sum || 1<<40-left[1] != sum {
		t.Errorf("%d passed, %d and %d were charged", sum, used, 1<<40-left[1])
	}
}
