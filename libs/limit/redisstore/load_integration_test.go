//go:build integration

package redisstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/breaker"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// Many clients on few cores are a queue, not an outage: with the budget of
// production the breaker stays closed, there are few connections and far fewer
// calls than decisions, and what is charged is what passed.
func TestManyClientsAreNoOutage(t *testing.T) {
	t.Parallel()
	const clients, each = 64, 150
	server := servertest.StartRedis(t)
	beat := breaker.NewHeartbeat(0, nil)
	var beats sync.WaitGroup
	ctx := t.Context()
	beats.Go(func() { _ = beat.Run(ctx) })
	t.Cleanup(beats.Wait)
	s := newStore(t, newStoreClient(t, server.Addr()), Options{Budget: DefaultBudget, Breaker: breaker.Options{Heartbeat: beat}})
	counters := []limit.Counter{longCounter(limit.FixedWindow, 1<<40), longCounter(limit.RenewingQuota, 1<<40)}
	servertest.Eventually(t, 10*time.Second, "the first decision", func() bool {
		_, err := s.Decide(ctx, counters)
		return err == nil
	})
	var wg sync.WaitGroup
	var passed, missed, shut atomic.Int64
	for range clients {
		wg.Go(func() {
			for range each {
				_, err := s.Decide(ctx, counters)
				switch {
				case err == nil:
					passed.Add(1)
				case errors.Is(err, limit.ErrUnavailable):
					missed.Add(1)
				default:
					t.Error(err)
				}
				if !s.Available() {
					shut.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if shut.Load() > 0 {
		t.Errorf("the breaker was open %d times", shut.Load())
	}
	// How many miss the budget is the machine's affair, and is only told below.
	if missed.Load() > clients*each/2 {
		t.Errorf("%d of %d decisions were not answered in time", missed.Load(), clients*each)
	}
	servertest.Eventually(t, 10*time.Second, "the last calls to end", s.idle)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer admin.Close()
	info, err := admin.InfoMap(ctx, "stats", "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	// A settlement may have taken what was not answered.
	left := remaining(t, s, counters)
	first := passed.Load() + 1
	t.Logf("%d passed, %d missed; connections %s, %s; %+v", passed.Load(), missed.Load(),
		info["Stats"]["total_connections_received"], info["Commandstats"]["cmdstat_evalsha"], s.Stats())
	for i, n := range left {
		if used := int64(1<<40) - n; used < first || used > first+int64(s.Stats().Lost) {
			t.Errorf("counter %d: %d used, %d passed", i, used, first)
		}
	}
}
