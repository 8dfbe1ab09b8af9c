//go:build integration

package keeper

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// loss is a bench whose Redis is its own and may lose everything.
type loss struct {
	*bench
	server *devserver.Redis
	client func() redis.UniversalClient // a new one
	events atomic.Int64
}

func newLoss(t *testing.T) *loss {
	t.Helper()
	l := &loss{bench: newBench(t), server: servertest.StartRedisWith(t, devserver.RedisOptions{AppendOnly: true})}
	l.client = func() redis.UniversalClient { return newRedisClient(t, l.server.Addr()) }
	l.redis, l.prefix = l.client(), "k:"
	return l
}

// gateway is a store as a gateway has one. Where it ships, each charge is an
// event; where it does not, it is cut off from Kafka.
type gateway struct {
	*redisstore.Store
	l     *loss
	ships bool
	stop  func()
}

func (l *loss) gateway(name string, ships bool) *gateway {
	l.t.Helper()
	s, err := redisstore.New(l.client(), redisstore.Options{KeyPrefix: l.prefix, Name: name, Budget: time.Second, CallTimeout: 2 * time.Second, Lanes: 8})
	if err != nil {
		l.t.Fatal(err)
	}
	g := &gateway{Store: s, l: l, ships: ships}
	g.stop = servertest.Run(l.t, name, s.Run)
	l.t.Cleanup(func() { _ = s.Close() })
	return g
}

func monthly(tenant int, limited int64) limit.Counter {
	return limit.Counter{Key: fmt.Sprintf("{t:tenant-%02d}:t::reports:quota", tenant), Algorithm: limit.RenewingQuota, Limit: limited, Cost: 1}
}

// charge reports whether a unit was admitted, and how much the counter has
// consumed; waits for a restore.
func (g *gateway) charge(c limit.Counter) (bool, limit.State) {
	g.l.t.Helper()
	var d limit.Decision
	servertest.Eventually(g.l.t, patience, "a decision", func() bool {
		var err error
		d, err = g.Decide(g.l.t.Context(), []limit.Counter{c})
		if err != nil && !errors.Is(err, limit.ErrUnavailable) {
			g.l.t.Fatal(err)
		}
		return err == nil
	})
	st := d.States[0]
	if d.Allowed && g.ships {
		limited := st.Limit
		n := g.l.events.Add(1)
		g.l.produce(usage.Event{
			ID: fmt.Sprintf("%020d", n), TS: time.Now(),
			Charges: []usage.Charge{{Counter: st.Key, Metric: "reports", Amount: c.Cost, Consumed: st.Consumed, Refunded: st.Refunded, Limit: &limited}},
		})
	}
	return d.Allowed, st
}

// metric reads one of a keeper's own.
func (l *loss) metric(s *Service, name string) float64 {
	l.t.Helper()
	found, err := s.deps.Registerer.(*prometheus.Registry).Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range found {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	l.t.Fatalf("no metric %s", name)
	return 0
}

func (l *loss) restores(s *Service) float64 { return l.metric(s, "sluice_keeper_restores_total") }

func (l *loss) flush() {
	l.t.Helper()
	if err := l.redis.FlushAll(l.t.Context()).Err(); err != nil {
		l.t.Fatal(err)
	}
}

func (l *loss) restart() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	if err := l.server.Start(ctx); err != nil {
		l.t.Fatal(err)
	}
}

// A Redis seen for the first time is whole once the keeper has looked at what is
// known; 850 units used are 850 after each kind of loss, by events alone, by
// checkpoints alone, by a gateway's memory alone.
func TestUsedUnitsSurviveEachLoss(t *testing.T) {
	t.Parallel()
	l := newLoss(t)
	s := l.newKeeper(100 * time.Millisecond)
	l.start(s)
	online, offline := l.gateway("online", true), l.gateway("offline", false)
	for range 85 {
		c := monthly(1, 1000)
		c.Cost = 5
		online.charge(c)
		offline.charge(c)
	}
	fresh := func(round int) { // reads it without having seen it before
		t.Helper()
		c := monthly(1, 1000)
		c.Cost = 0
		if _, st := l.gateway(fmt.Sprintf("fresh-%d", round), true).charge(c); st.Consumed != 850 || st.Remaining != 150 {
			t.Fatalf("round %d: %+v, want 850 consumed", round, st)
		}
	}
	losses := []func(){
		l.flush,
		func() { l.server.Kill(); l.restart() },
		func() { // a second flush in the middle of a restore
			l.flush()
			servertest.Eventually(t, patience, "a restore to begin", func() bool { return l.redis.Exists(t.Context(), l.prefix+"epoch").Val() == 1 })
			l.flush()
		},
	}
	for i, lose := range losses {
		before := l.restores(s)
		lose()
		servertest.Eventually(t, patience, "the restore", func() bool { return l.restores(s) > before })
		fresh(i)
	}
	// What only the offline gateway knew is in Redis, and in events of others.
	online.charge(monthly(1, 1000))
	offline.stop()
	b := l.bench
	servertest.Eventually(t, patience, "the checkpoint", func() bool { return b.rows()[counterNow(1)].Consumed == 851 })
	online.stop()
	l.flush()
	servertest.Eventually(t, patience, "the restore from checkpoints", func() bool {
		return l.redis.Get(t.Context(), l.prefix+counterNow(1)+":c").Val() == "851"
	})
	ttl := l.redis.TTL(t.Context(), l.prefix+counterNow(1)+":c").Val()
	if ttl < 72*time.Hour || ttl > 100*24*time.Hour {
		t.Errorf("a restored period lives for %s", ttl)
	}
}

// counterNow is the identity of a tenant's counter of this month.
func counterNow(tenant int) string {
	return fmt.Sprintf("{t:tenant-%02d}:t::reports:quota:month:%s", tenant, time.Now().UTC().Format("200601"))
}

// Kafka or Postgres away: nothing is declared whole that is not.
func TestNothingIsWholeWhileCheckpointsCannotBeRead(t *testing.T) {
	t.Parallel()
	l := newLoss(t)
	l.proxy.Stop()
	s := l.newKeeper(time.Hour)
	l.start(s)
	g := l.gateway("gw", true)
	servertest.Eventually(t, patience, "attempts to fail", func() bool { return l.metric(s, "sluice_keeper_restore_failures_total") > 0 })
	if _, err := g.Decide(t.Context(), []limit.Counter{monthly(1, 10)}); !errors.Is(err, limit.ErrRestoring) {
		t.Fatalf("error %v, want ErrRestoring", err)
	}
	if n := l.metric(s, "sluice_keeper_restoring"); n != 1 {
		t.Errorf("sluice_keeper_restoring %v", n)
	}
	if err := l.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	g.charge(monthly(1, 10))
}

// Two keepers and callers of their own restore at once: 30 stays 30.
func TestRestoresFromAnyNumberOfCallers(t *testing.T) {
	t.Parallel()
	l := newLoss(t)
	for range 3 {
		l.start(l.newKeeper(50 * time.Millisecond))
	}
	g := l.gateway("gw", true)
	for range 30 {
		g.charge(monthly(1, 100))
	}
	one := l.newKeeper(time.Hour).restore
	for range 6 {
		if err := one.Steps()[stepRaise](t.Context(), restore.Process{}); err != nil {
			t.Fatal(err)
		}
	}
	l.flush()
	c := monthly(1, 100)
	c.Cost = 0
	if _, st := l.gateway("fresh", true).charge(c); st.Consumed != 30 {
		t.Fatalf("%+v, want 30", st)
	}
}

// A keeper is killed after each step of a restore: the next one ends it.
func TestKillAtEachStepOfARestore(t *testing.T) {
	t.Parallel()
	l := newLoss(t)
	l.start(l.newKeeper(50 * time.Millisecond))
	g := l.gateway("gw", false)
	for range 7 {
		g.charge(monthly(1, 10))
	}
	for steps := range 4 {
		l.flush()
		l.lastSteps(l.newKeeper(time.Hour), steps)
		c := monthly(1, 10)
		c.Cost = 0
		if _, st := l.gateway(fmt.Sprintf("fresh-%d", steps), true).charge(c); st.Consumed != 7 {
			t.Fatalf("killed after step %d: %+v, want 7", steps, st)
		}
	}
}

// stepRaise is the place of that step in restore.Restorer.Steps.
const stepRaise = 1

// lastSteps are those that a keeper does before it dies, beside one that lives.
func (l *loss) lastSteps(s *Service, steps int) {
	l.t.Helper()
	if steps == 0 {
		return
	}
	r := restore.New(l.redis, l.prefix)
	all, err := r.Look(l.t.Context(), true)
	if err != nil {
		l.t.Fatal(err)
	}
	p, err := r.Begin(l.t.Context(), all[0])
	if err != nil {
		l.t.Fatal(err)
	}
	for i, step := range s.restore.Steps()[:steps-1] {
		if err := step(l.t.Context(), p); err != nil {
			l.t.Fatalf("step %d: %v", i, err)
		}
	}
}
