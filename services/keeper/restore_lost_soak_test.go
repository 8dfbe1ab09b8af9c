//go:build integration && soak

package keeper

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// Two gateways under one name.
func TestTwoGatewaysOfOneNameTellApart(t *testing.T) {
	t.Parallel()
	l := newDeafLoss(t)
	k := l.newKeeper(100 * time.Millisecond)
	l.start(k)
	twin := l.gateway("b", false)
	l.awaitAcquainted()
	servertest.Eventually(t, patience, "twin", twin.Whole)
	l.a.charge(costing(1, 5)[0])
	l.b.charge(costing(1, 5)[0])
	twin.charge(costing(1, 1)[0]) // 11
	l.awaitRest()
	heal := l.drop("upstream") // a's call never comes to Redis
	done := make(chan error, 1)
	go func() { done <- l.lost(costing(1, 3)) }()
	l.b.charge(costing(1, 2)[0])
	twin.charge(costing(1, 2)[0]) // 15 admitted
	if err := <-done; err == nil {
		t.Fatal("answered")
	}
	before := testutil.ToFloat64(k.metrics.restores)
	l.flush()
	heal()
	l.awaitRestore(before, k)
	l.equal("15 were admitted:", map[int]int64{1: 15})
}

// A settlement (gives back 3) is lost twice and answered the third time: it was
// charged once. Then a decision of 6 that never came to Redis is lost with it.
func TestASettlementLostTwiceIsOne(t *testing.T) {
	t.Parallel()
	l := newDeafLoss(t)
	k := l.newKeeper(100 * time.Millisecond)
	l.start(k)
	l.awaitAcquainted()
	l.a.charge(costing(1, 5)[0])
	l.b.charge(costing(1, 5)[0])
	l.a.charge(costing(1, 0)[0])
	l.awaitRest()
	try := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := l.a.Settle(ctx, "r", 1, costing(1, -3))
		return err
	}
	heal := l.drop("downstream")
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- try() }()
	}
	servertest.Eventually(t, patience, "redis to have charged what was sent", func() bool { return l.net(1) == 7 })
	for range 2 {
		if err := <-done; err == nil {
			t.Fatal("answered")
		}
	}
	heal()
	servertest.Eventually(t, patience, "the settlement", func() bool { return try() == nil })
	servertest.Eventually(t, patience, "a's breaker", func() bool { return l.a.Available() })
	unsent := l.drop("upstream")
	if err := l.lost(costing(1, 6)); err == nil {
		t.Fatal("answered")
	}
	before := testutil.ToFloat64(k.metrics.restores)
	l.flush()
	unsent()
	l.awaitRestore(before, k)
	l.equal("10 were admitted, 3 given back:", map[int]int64{1: 7})
}

func advance(t *testing.T, g *gateway, from, to, cost int64) error {
	v := redisstore.Advance{Steps: []redisstore.Step{{Key: "{t:tenant-01}:state:r1", From: from, To: to}}, At: time.Now()}
	if cost != 0 {
		v.Counters = costing(1, cost)
		v.Counters[0].Force = cost < 0
	}
	_, err := g.Advance(t.Context(), v)
	return err
}

// a's commit of a reservation (gives back 7) and a decision of a's never come to
// Redis; the client commits it by b. The step's number says 2, and a could take its own
// commit for charged, or not: it cannot know. Redis is killed and started again
// with its file.
func TestAStepOfAnotherIsNoProof(t *testing.T) {
	t.Parallel()
	l := newDeafLoss(t)
	k := l.newKeeper(100 * time.Millisecond)
	l.start(k)
	l.awaitAcquainted()
	l.a.charge(costing(1, 5)[0])
	l.b.charge(costing(1, 5)[0])
	if err := advance(t, l.a, 0, 1, 10); err != nil {
		t.Fatal(err)
	}
	l.b.charge(costing(1, 1)[0]) // 21
	l.awaitRest()
	heal := l.drop("upstream")
	done := make(chan error, 2)
	go func() { done <- advance(t, l.a, 1, 2, -7) }()
	go func() { done <- l.lost(costing(1, 3)) }()
	if err := advance(t, l.b, 1, 2, -7); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-done; err == nil {
			t.Fatal("answered")
		}
	}
	l.equal("before the loss", map[int]int64{1: 14})
	before := testutil.ToFloat64(k.metrics.restores)
	l.server.Kill()
	l.restart()
	heal()
	l.awaitRestore(before, k)
	l.equal("21 were admitted, 7 given back:", map[int]int64{1: 14})
}

// a's reservation (3) is made and its answer lost; the client commits it by c, of
// 2; then Redis is flushed. c, on a slow line, hands in the step's number after a
// has looked for it: the 3 are taken out, and the reservation is there.
func TestAProofThatIsHandedInLateCounts(t *testing.T) {
	t.Parallel()
	l := newDeafLoss(t)
	k := l.newKeeper(100 * time.Millisecond)
	l.start(k)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	line := toxiproxy.NewProxy(server, "slow", "127.0.0.1:0", l.server.Addr())
	if err := line.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(line.Stop)
	direct := l.client
	l.client = func() redis.UniversalClient { return newRedisClient(t, line.Listen) }
	c := l.gateway("c", false)
	l.client = direct
	servertest.Eventually(t, patience, "c", c.Whole)
	l.awaitAcquainted()
	l.a.charge(costing(1, 5)[0])
	l.b.charge(costing(1, 5)[0])
	c.charge(costing(1, 0)[0])
	l.awaitRest()
	heal := l.drop("downstream")
	done := make(chan error, 1)
	go func() { done <- advance(t, l.a, 0, 1, 3) }()
	servertest.Eventually(t, patience, "the reservation", func() bool { return l.net(1) == 13 })
	if err := advance(t, c, 1, 2, -1); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Fatal("answered")
	}
	before := testutil.ToFloat64(k.metrics.restores)
	if _, err := line.Toxics.AddToxicJson(strings.NewReader(`{"name": "slow", "type": "latency", "stream": "downstream", "attributes": {"latency": 400}}`)); err != nil {
		t.Fatal(err)
	}
	l.flush()
	heal()
	l.awaitRestore(before, k)
	if err := advance(t, l.a, 0, 1, 3); err == nil {
		t.Error("it is reserved anew")
	}
	l.equal("10 and a reservation of 3, committed of 2:", map[int]int64{1: 12})
}
