//go:build integration

package keeper

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// moving is a Cluster whose slots move, watched by a keeper that looks when the
// test says so.
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
	m.atRest()
	return m
}

// look has the keeper look, and returns how many restores came of it.
func (m *moving) look() int {
	m.t.Helper()
	before := testutil.ToFloat64(m.keeper.metrics.restores)
	servertest.Eventually(m.t, patience, "a look", func() bool { return m.keeper.restore.look(m.t.Context(), false) == nil })
	return int(testutil.ToFloat64(m.keeper.metrics.restores) - before)
}

// atRest looks until the keeper has seen all of the Cluster whole, and at rest.
func (m *moving) atRest() {
	m.t.Helper()
	r := m.keeper.restore
	r.watch = r.redis.Watch()
	servertest.Eventually(m.t, patience, "the cluster to be whole and at rest", func() bool {
		r.anew = true
		m.look()
		return r.watch.AtRest()
	})
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

// A slot that moved between processes that lost nothing is whole where it came
// to, without a restore: with all that was charged, and while counters beside it
// are charged as ever. That is so for the slots, too, whose markers speak for a
// whole process.
func TestMovedSlotNeedsNoRestore(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	m.start(m.keeper)
	moved, slot := m.tenantOn(0)
	m.charge(moved, 30)
	beside, _ := m.tenantOn(1)
	m.charge(beside, 5)
	for _, move := range []struct{ slot, from, to int }{{slot, 0, 1}, {slot, 1, 2}, {slot, 2, 1}, {slot, 1, 0}} {
		m.c.Move(t, move.slot, move.from, move.to)
		began := time.Now()
		if _, err := m.gateway.Decide(t.Context(), []limit.Counter{monthly(beside, 1000)}); err != nil {
			t.Errorf("%+v: a counter beside the slot: %v", move, err)
		}
		m.used[beside]++
		m.charge(moved, 5)
		t.Logf("%+v: charged again after %s", move, time.Since(began).Round(time.Millisecond))
	}
	for _, home := range []struct{ slot, from, to int }{{0, 0, 2}, {5461, 1, 0}} {
		m.c.Move(t, home.slot, home.from, home.to)
		m.whole(home.slot, home.to)
	}
	m.charge(moved, 1)
	m.charge(beside, 1)
	if n := testutil.ToFloat64(m.keeper.metrics.restores); n != 3 {
		t.Errorf("%v restores, want the 3 of the start", n)
	}
}

// whole waits until the marker of a slot is of the process that has it.
func (m *moving) whole(slot, node int) {
	m.t.Helper()
	info, err := m.c.Clients[node].InfoMap(m.t.Context(), "server").Result()
	if err != nil {
		m.t.Fatal(err)
	}
	key := m.prefix + "{" + m.tagOf(slot) + "}:marker"
	servertest.Eventually(m.t, patience, "the slot to be whole", func() bool {
		return strings.HasPrefix(m.redis.Get(m.t.Context(), key).Val(), info["Server"]["run_id"])
	})
}

// tagOf is the smallest number in a slot, which its marker is named by.
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
		m.atRest()
		tenant, slot := m.tenantOn(0)
		m.charge(tenant, 30)
		key := m.prefix + counterNow(tenant) + ":c"
		to, from := m.myID(1), m.myID(0)
		m.do(1, "cluster", "setslot", slot, "importing", from)
		m.do(0, "cluster", "setslot", slot, "migrating", to)
		// Its counter has moved, its marker has not.
		m.do(0, "migrate", "127.0.0.1", m.c.Nodes[1].Port(), key, 0, 1000)
		m.do(loser, "flushall")
		// The loser is restored, unless the slot on its way is its own: then it
		// cannot be said to be whole before that has arrived.
		_ = m.keeper.restore.look(t.Context(), false)
		m.c.Move(t, slot, 0, 1)
		if n := m.look(); n == 0 {
			t.Errorf("%s: the slot was taken for whole", name)
		}
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
