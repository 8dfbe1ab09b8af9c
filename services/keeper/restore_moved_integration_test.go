//go:build integration

package keeper

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// moving is a Cluster whose slots move, watched by a keeper.
type moving struct {
	*loss
	c       *servertest.RedisCluster
	keeper  *Service
	gateway *gateway
	used    map[int]int64 // by tenant
}

func newMoving(t *testing.T) *moving {
	t.Helper()
	m := &moving{loss: &loss{bench: newBench(t)}, c: servertest.StartRedisCluster(t), used: map[int]int64{}}
	m.client = func() redis.UniversalClient {
		o := &redis.UniversalOptions{Addrs: m.c.Addrs(), IsClusterMode: true}
		redisstore.Configure(o, 2*time.Second)
		client := redis.NewUniversalClient(o)
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	m.redis, m.prefix = m.client(), "k:"
	m.keeper = m.newKeeper(time.Hour)
	m.gateway = m.loss.gateway("gw", true)
	m.start(m.keeper)
	return m
}

// tenantOn returns a tenant, not used before, whose counters lie on a node, and
// their slot.
func (m *moving) tenantOn(node int) (tenant, slot int) {
	m.t.Helper()
	for tenant = 1; ; tenant++ {
		slot = m.slotOf(fmt.Sprintf("{t:tenant-%02d}", tenant))
		if _, taken := m.used[tenant]; !taken && slot*3/16384 == node {
			return tenant, slot
		}
	}
}

func (m *moving) slotOf(key string) int {
	m.t.Helper()
	slot, err := m.c.Clients[0].ClusterKeySlot(m.t.Context(), key).Result()
	if err != nil {
		m.t.Fatal(err)
	}
	return int(slot)
}

// charge charges units and holds the counter to all that were.
func (m *moving) charge(tenant, units int) {
	m.t.Helper()
	for range units {
		if _, st := m.gateway.charge(monthly(tenant, 1000)); st.Consumed != m.used[tenant]+1 {
			m.t.Fatalf("tenant %d: %d consumed, want %d", tenant, st.Consumed, m.used[tenant]+1)
		}
		m.used[tenant]++
	}
}

func (m *moving) do(node int, args ...any) {
	m.t.Helper()
	if err := m.c.Clients[node].Do(m.t.Context(), args...).Err(); err != nil {
		m.t.Fatalf("%v: %v", args, err)
	}
}

// A slot that moved is restored together with the master it came to: nothing that
// was charged is lost. That is so for the slots, too, whose epochs speak for a whole
// process.
func TestMovedSlotIsRestored(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	moved, slot := m.tenantOn(0)
	m.charge(moved, 30)
	beside, _ := m.tenantOn(1)
	m.charge(beside, 5)
	for _, move := range []struct{ slot, from, to int }{{slot, 0, 1}, {slot, 1, 2}, {slot, 2, 0}} {
		m.c.Move(t, move.slot, move.from, move.to)
		began := time.Now()
		m.charge(moved, 5)
		m.charge(beside, 1)
		t.Logf("%+v: charged again after %s", move, time.Since(began).Round(time.Millisecond))
	}
	for _, home := range []struct{ slot, from, to int }{{0, 0, 2}, {5461, 1, 0}} {
		m.c.Move(t, home.slot, home.from, home.to)
		m.whole(home.slot, home.to)
	}
	m.charge(moved, 1)
	m.charge(beside, 1)
}

// whole waits until the epoch of a slot is of the process that has it.
func (m *moving) whole(slot, node int) {
	m.t.Helper()
	info, err := m.c.Clients[node].InfoMap(m.t.Context(), "server").Result()
	if err != nil {
		m.t.Fatal(err)
	}
	key := m.prefix + "{" + m.tagOf(slot) + "}:epoch"
	servertest.Eventually(m.t, patience, "the slot to be whole", func() bool {
		return strings.HasPrefix(m.redis.Get(m.t.Context(), key).Val(), info["Server"]["run_id"])
	})
}

// tagOf is the smallest number in a slot, which its epoch is named by.
func (m *moving) tagOf(slot int) string {
	m.t.Helper()
	for n := 0; ; n++ {
		if m.slotOf(strconv.Itoa(n)) == slot {
			return strconv.Itoa(n)
		}
	}
}

// Where a process lost its data while a slot was on its way, units of the slot
// may be lost with it: what is known of them is brought back before any is
// charged.
func TestMovedSlotIsRestoredWhereSomethingWasLost(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	for loser, name := range []string{"where it came from", "where it goes to"} {
		tenant, slot := m.tenantOn(0)
		m.charge(tenant, 30)
		key := m.prefix + counterNow(tenant) + ":c"
		to, from := m.myID(1), m.myID(0)
		m.do(1, "cluster", "setslot", slot, "importing", from)
		m.do(0, "cluster", "setslot", slot, "migrating", to)
		// Its counter has moved, its epoch has not.
		m.do(0, "migrate", "127.0.0.1", m.c.Nodes[1].Port(), key, 0, 1000)
		m.do(loser, "flushall")
		m.c.Move(t, slot, 0, 1)
		t.Log(name)
		m.charge(tenant, 1)
	}
}

func (m *moving) myID(node int) string {
	m.t.Helper()
	id, err := m.c.Clients[node].Do(m.t.Context(), "cluster", "myid").Text()
	if err != nil {
		m.t.Fatal(err)
	}
	return id
}
