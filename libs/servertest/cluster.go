package servertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/devserver"
)

const slots = 16384

// RedisCluster is three masters that share the slots in thirds, and a client of each; replicas come after them.
type RedisCluster struct {
	Nodes   []*devserver.Redis
	Clients []*redis.Client
	ids     []string
}

// StartRedisCluster starts a Redis Cluster of the test's own, and returns when all of its nodes say that it is whole.
func StartRedisCluster(t testing.TB) *RedisCluster {
	t.Helper()
	c := &RedisCluster{}
	for range 3 {
		c.start(t)
	}
	for i, client := range c.Clients {
		if err := client.ClusterAddSlotsRange(t.Context(), slots*i/3, slots*(i+1)/3-1).Err(); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			c.meet(t, i)
		}
	}
	Eventually(t, 30*time.Second, "the cluster to be whole", func() bool {
		for _, client := range c.Clients {
			shards, err := client.ClusterShards(t.Context()).Result()
			info, infoErr := client.ClusterInfo(t.Context()).Result()
			if err != nil || infoErr != nil || len(shards) != 3 || !strings.HasPrefix(info, "cluster_state:ok") {
				return false
			}
		}
		return true
	})
	return c
}

func (c *RedisCluster) start(t testing.TB) {
	t.Helper()
	node := StartRedisWith(t, devserver.RedisOptions{Cluster: true, Args: []string{
		"--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0", "--appendonly", "yes",
	}})
	client := redis.NewClient(&redis.Options{Addr: node.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	c.Nodes, c.Clients = append(c.Nodes, node), append(c.Clients, client)
	c.ids = append(c.ids, text(t, client, "cluster", "myid"))
}

// AddReplica adds a node that follows a master, and returns its place among the nodes.
func (c *RedisCluster) AddReplica(t testing.TB, of int) int {
	t.Helper()
	c.start(t)
	added := len(c.Nodes) - 1
	c.meet(t, added)
	Eventually(t, 30*time.Second, "the new node to know its master", func() bool {
		return c.Clients[added].ClusterReplicate(t.Context(), c.ids[of]).Err() == nil
	})
	Follows(t, c.Clients[added])
	Eventually(t, 30*time.Second, "all nodes to know all masters", c.agree)
	return added
}

// agree reports whether every node sees all masters, with the same epochs, no two
// of which are alike: one that takes over draws the next, and is believed.
func (c *RedisCluster) agree() bool {
	epochs := map[string]string{} // by master
	owners := map[string]string{} // by epoch
	for _, client := range c.Clients {
		nodes, err := client.ClusterNodes(context.Background()).Result()
		if err != nil {
			return false
		}
		masters := 0
		for line := range strings.Lines(nodes) {
			fields := strings.Fields(line)
			if len(fields) < 9 { // it has no slots
				continue
			}
			masters++
			id, epoch := fields[0], fields[6]
			if known := epochs[id]; known != "" && known != epoch || owners[epoch] != "" && owners[epoch] != id {
				return false
			}
			epochs[id], owners[epoch] = epoch, id
		}
		if masters != 3 {
			return false
		}
	}
	return true
}

// TakeOver makes a replica the master in its master's place, which follows it then.
func (c *RedisCluster) TakeOver(t testing.TB, replica, master int) {
	t.Helper()
	text(t, c.Clients[replica], "cluster", "failover", "takeover")
	Follows(t, c.Clients[master])
}

// meet makes the first node and another know each other.
func (c *RedisCluster) meet(t testing.TB, i int) {
	t.Helper()
	bus, err := c.Clients[i].ConfigGet(t.Context(), "cluster-port").Result()
	if err != nil {
		t.Fatal(err)
	}
	text(t, c.Clients[0], "cluster", "meet", "127.0.0.1", c.Nodes[i].Port(), bus["cluster-port"])
}

// Addrs are the nodes' host:port.
func (c *RedisCluster) Addrs() (all []string) {
	for _, node := range c.Nodes {
		all = append(all, node.Addr())
	}
	return all
}

// Move gives a slot and its keys to another node, as redis-cli --cluster reshard does: meanwhile keys that are not
// there yet are made on the second node, and calls on keys of which some have moved are refused.
func (c *RedisCluster) Move(t testing.TB, slot, from, to int) {
	t.Helper()
	text(t, c.Clients[to], "cluster", "setslot", slot, "importing", c.ids[from])
	text(t, c.Clients[from], "cluster", "setslot", slot, "migrating", c.ids[to])
	for {
		keys, err := c.Clients[from].ClusterGetKeysInSlot(t.Context(), slot, 10).Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			text(t, c.Clients[from], "migrate", "127.0.0.1", c.Nodes[to].Port(), key, 0, 1000)
		}
	}
	text(t, c.Clients[to], "cluster", "setslot", slot, "node", c.ids[to])
	for i, client := range c.Clients {
		if i != to {
			text(t, client, "cluster", "setslot", slot, "node", c.ids[to])
		}
	}
}

func text(t testing.TB, client *redis.Client, args ...any) string {
	t.Helper()
	s, err := client.Do(t.Context(), args...).Text()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return s
}
