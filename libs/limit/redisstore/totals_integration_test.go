//go:build integration

package redisstore

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// nodeTrips counts what is sent to each node of a Cluster.
type nodeTrips struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *nodeTrips) add(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[addr]++
}

func (c *nodeTrips) total() (nodes, trips int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.n {
		trips += n
	}
	return len(c.n), trips
}

// nodeHook is on the client of one node.
type nodeHook struct {
	trips *nodeTrips
	addr  string
}

func (h nodeHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h nodeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.trips.add(h.addr)
		return next(ctx, cmd)
	}
}

func (h nodeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.trips.add(h.addr)
		return next(ctx, cmds)
	}
}

// A thousand counters of as many tenants are one round trip to each node.
func TestTotalsAreOneRoundTripANode(t *testing.T) {
	t.Parallel()
	client := clusterClient(t, servertest.StartRedisCluster(t))
	trips := &nodeTrips{n: map[string]int{}}
	client.OnNewNode(func(node *redis.Client) { node.AddHook(nodeHook{trips, node.Options().Addr}) })
	var counters []string
	for i := range 1000 {
		counter := fmt.Sprintf("{t:n%d}:t::m:quota:month:202607", i)
		counters = append(counters, counter)
		if i%10 == 0 {
			if err := client.Set(t.Context(), "p:"+counter+":c", i, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := ReadTotals(t.Context(), client, "p:", counters); err != nil { // finds the nodes
		t.Fatal(err)
	}
	trips.mu.Lock()
	clear(trips.n)
	trips.mu.Unlock()
	all, err := ReadTotals(t.Context(), client, "p:", counters)
	if err != nil {
		t.Fatal(err)
	}
	if nodes, n := trips.total(); nodes != 3 || n != 3 {
		t.Errorf("%d round trips to %d nodes, want one to each of 3", n, nodes)
	}
	for i, got := range all {
		if want := (Totals{Consumed: int64(i - i%10)}); i%10 == 0 && got != want || i%10 != 0 && got != (Totals{}) {
			t.Errorf("counter %d is %+v", i, got)
		}
	}
}
