//go:build integration

package redisstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// newStores returns stores as two gateways have them, on the shared server.
func newStores(t testing.TB) (a, b *Store) {
	t.Helper()
	addr, prefix := servertest.Redis(t)
	return newStore(t, newClient(t, addr), Options{KeyPrefix: prefix}),
		newStore(t, newClient(t, addr), Options{KeyPrefix: prefix})
}

func TestScriptEqualsModelOnRedis(t *testing.T) {
	t.Parallel()
	for name, algorithms := range historySets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, prefix := servertest.Redis(t)
			checkHistories(t, newClient(t, addr), prefix, algorithms...)
		})
	}
}

// flood sends n decisions on the counters from 64 clients of two stores and
// returns how many passed, and how long it took by Redis's clock.
func flood(t *testing.T, a, b *Store, n int, counters func(client int) []limit.Counter) (passed int64, took time.Duration) {
	t.Helper()
	var (
		wg          sync.WaitGroup
		left        atomic.Int64
		pass        atomic.Int64
		mu          sync.Mutex
		first, last time.Time
	)
	left.Store(int64(n))
	for client := range 64 {
		store := []*Store{a, b}[client%2]
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				d, err := store.Decide(t.Context(), counters(client))
				if err != nil {
					t.Error(err)
					return
				}
				if d.Allowed {
					pass.Add(1)
				}
				mu.Lock()
				if first.IsZero() || d.Now.Before(first) {
					first = d.Now
				}
				if d.Now.After(last) {
					last = d.Now
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return pass.Load(), last.Sub(first)
}

// Gateways × clients × every algorithm × one Redis and a Cluster: never over the
// limit, and what is charged is what was allowed.
func TestNeverOverTheLimit(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, a, b *Store, counters func(limit.Algorithm) []limit.Counter) {
		for _, algorithm := range everyAlgorithm {
			all := counters(algorithm)
			passed, _ := flood(t, a, b, 600, func(int) []limit.Counter { return all })
			if passed != 100 {
				t.Errorf("%s: %d of 600 passed a counter of 100", algorithm, passed)
			}
			for i, left := range remaining(t, a, all) {
				if left != all[i].Capacity()-passed {
					t.Errorf("%s: %d passed, counter %d has %d left of %d", algorithm, passed, i, left, all[i].Capacity())
				}
			}
		}
	}
	one := func(algorithm limit.Algorithm) []limit.Counter { return []limit.Counter{longCounter(algorithm, 100)} }
	t.Run("one Redis", func(t *testing.T) {
		t.Parallel()
		a, b := newStores(t)
		check(t, a, b, one)
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		c := servertest.StartRedisCluster(t)
		a, b := newStore(t, clusterClient(t, c), Options{}), newStore(t, clusterClient(t, c), Options{})
		check(t, a, b, one)
		// In three slots the twin of a denied decision may be denied itself, so
		// that fewer pass while they race; what is charged still is what passed.
		for i, algorithm := range everyAlgorithm {
			all := spread(longCounter(algorithm, 1000), 100+i)
			all[1] = capacity(all[1], 100)
			passed, _ := flood(t, a, b, 300, func(int) []limit.Counter { return all })
			left := remaining(t, a, all)
			if passed > 100 || left[0] != 1000-passed || left[1] != 100-passed || left[2] != 1000-passed {
				t.Errorf("%s: %d passed, %v left", algorithm, passed, left)
			}
		}
	})
}

func TestGCRANeverOverBurstAndRefill(t *testing.T) {
	t.Parallel()
	c := limit.Counter{Key: "{t:a}:t::m:gcra:1", Algorithm: limit.GCRA, Limit: 50, Burst: 100, Window: time.Second, Cost: 1}
	a, b := newStores(t)
	passed, took := flood(t, a, b, 2000, func(int) []limit.Counter { return []limit.Counter{c} })
	most := 100 + int64(took/(20*time.Millisecond)) + 1
	if passed < 100 || passed > most {
		t.Fatalf("%d passed in %s, want 100 to %d", passed, took, most)
	}
}

// Nothing is charged when one counter denies: the users' own counters add up to
// what their tenant's let through.
func TestAllOrNothingUnderContention(t *testing.T) {
	t.Parallel()
	tenant := limit.Counter{Key: "{t:a}:t::m:quota", Algorithm: limit.RenewingQuota, Limit: 100, Cost: 1}
	user := func(client int) limit.Counter {
		c := tenant
		c.Key, c.Limit = fmt.Sprintf("{t:a}:u:u%d:m:quota", client), 1000
		return c
	}
	a, b := newStores(t)
	passed, _ := flood(t, a, b, 1000, func(client int) []limit.Counter { return []limit.Counter{user(client), tenant} })
	var total int64
	for client := range 64 {
		c := user(client)
		c.Cost = 0
		d, err := a.Decide(t.Context(), []limit.Counter{c})
		if err != nil {
			t.Fatal(err)
		}
		total += d.States[0].Consumed
	}
	if passed != 100 || total != 100 {
		t.Fatalf("%d passed, users were charged %d; want 100 and 100", passed, total)
	}
}
