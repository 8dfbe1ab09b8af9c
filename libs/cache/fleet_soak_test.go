//go:build integration && soak

package cache_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// The shop window: 20 processes × 600 readers.
func TestOneLoadInALargeFleet(t *testing.T) {
	addr, prefix := servertest.Redis(t)
	f := fleetMember{Addr: addr, Prefix: prefix, Readers: 600, Load: 900 * time.Millisecond}
	if n := fleet(t, 20, f); n != 1 {
		t.Errorf("%d loads", n)
	}
}

// Expiries under load with stale-while-revalidate: as many loads as expiries, fewer than two a minute, and no reader
// feels one.
func TestExpiriesUnderLoad(t *testing.T) {
	const ttl, expiries, rate, nodes = time.Minute, 2, 12000, 4
	addr, prefix := servertest.Redis(t)
	reg := prometheus.NewRegistry()
	metrics := cache.NewMetrics(reg)
	var all []*cache.Cache[string]
	for range nodes {
		o := quick(client(t, addr))
		o.Prefix, o.TTL, o.StaleWhileRevalidate, o.Metrics = prefix, ttl, 5*time.Second, metrics
		o.Load = func(ctx context.Context, _ string) (cache.Loaded[string], error) {
			select {
			case <-time.After(900 * time.Millisecond):
			case <-ctx.Done():
			}
			return cache.Loaded[string]{Value: "v"}, nil
		}
		all = append(all, listening(t, running(t, o), o))
	}
	get(t, all[0], "k")
	ctx, cancel := context.WithTimeout(t.Context(), expiries*ttl+ttl/2)
	defer cancel()
	const workers, tick = 12, 10 * time.Millisecond
	perTick := int(float64(rate) * tick.Seconds() / workers)
	times := make([][]time.Duration, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			pace := time.NewTicker(tick)
			defer pace.Stop()
			for ctx.Err() == nil {
				for range perTick {
					began := time.Now()
					get(t, all[w%nodes], "k")
					times[w] = append(times[w], time.Since(began))
				}
				<-pace.C
			}
		})
	}
	wg.Wait()
	sorted := slices.Sorted(slices.Values(slices.Concat(times...)))
	p99 := sorted[len(sorted)*99/100]
	loads := counters(t, reg)["cache_loads_total/ok"]
	t.Logf("%.0f reads/s, %.0f loads for %d expiries, p50 %s, p99 %s, max %s", float64(len(sorted))/(expiries*ttl+ttl/2).Seconds(),
		loads, expiries, sorted[len(sorted)/2], p99, sorted[len(sorted)-1])
	if loads > expiries+1 {
		t.Error(fmt.Sprint(loads, " loads"))
	}
	if p99 > 5*time.Millisecond {
		t.Errorf("p99 %s", p99)
	}
}
