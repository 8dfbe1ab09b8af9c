//go:build integration

package gateway

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// Two gateways whose clocks are twenty seconds apart count by Redis's.
func TestClocksOfGatewaysDoNotMatter(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{
		"gcra":        `{"algorithm":"gcra","limit":1,"window":"24h","burst":4}`,
		"tokenBucket": `{"algorithm":"tokenBucket","limit":1,"window":"24h","burst":4}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := onSharedKafka(t)
			addr, prefix := servertest.Redis(t)
			d.putRule(ruleJSON("four", "tenant", "calls", limit, ""))
			var gateways []*running
			for id, skew := range map[string]time.Duration{"gw-early": -10 * time.Second, "gw-late": 10 * time.Second} {
				d.now = func() time.Time { return time.Now().Add(skew) }
				gateways = append(gateways, d.runReady(id, addr, prefix, nil))
			}
			if passed, _ := flood(t, gateways, 8, 3); passed != 4 {
				t.Errorf("%d passed, want 4", passed)
			}
		})
	}
}

// Tenant A floods at ten times its limit: nothing of B is denied, and nothing
// is answered without the store. BenchmarkNoisyTenant tells how long others wait.
func TestNoisyTenantDisturbsNoOther(t *testing.T) {
	n := withNoise(t)
	quiet := n.measure(t, 100)
	stop := n.flood(t)
	servertest.Eventually(t, patience, "a to be over its limit", func() bool { return n.denied.Load() > 50 })
	noisy := n.measure(t, 100)
	stop()
	t.Logf("b's p99 is %s quiet, %s beside a, which had %d passed and %d denied", quiet, noisy, n.passed.Load(), n.denied.Load())
}

// noise is a gateway where A may ask 100 times a second and B 50 times.
type noise struct {
	gate           *running
	denied, passed atomic.Int64
}

func withNoise(t testing.TB) *noise {
	d := onSharedKafka(t)
	for tenant, limit := range map[string]string{"a": "100", "b": "50"} {
		d.putRule(`{"id":"` + tenant + `","subject":{"kind":"tenant","value":"` + tenant + `"},"metric":"calls","limit":{"algorithm":"gcra","limit":` +
			limit + `,"window":"1s","burst":` + limit + `}}`)
	}
	return &noise{gate: d.runReady("gw", servertest.StartRedis(t).Addr(), "", nil)}
}

// flood asks for A, ten clients a hundred times a second each, until stopped.
func (n *noise) flood(t testing.TB) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 10 {
		clients.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				switch a := do(t, http.MethodGet, n.gate.base+"/demo/x", "X-Tenant-Id", "a"); a.StatusCode {
				case http.StatusOK:
					n.passed.Add(1)
				case http.StatusTooManyRequests:
					n.denied.Add(1)
				default:
					t.Errorf("a is answered %d", a.StatusCode)
				}
				<-pace.C
			}
		})
	}
	return func() { cancel(); clients.Wait() }
}

// measure asks for B at 40 a second, of 50, and returns the p99.
func (n *noise) measure(t testing.TB, times int) time.Duration {
	t.Helper()
	pace := time.NewTicker(25 * time.Millisecond)
	defer pace.Stop()
	took := make([]time.Duration, 0, times)
	for range times {
		<-pace.C
		began := time.Now()
		if a := do(t, http.MethodGet, n.gate.base+"/demo/x", "X-Tenant-Id", "b"); a.StatusCode != http.StatusOK || a.Header.Get("Sluice-Degraded") != "" {
			t.Errorf("b is answered %d, degraded %q", a.StatusCode, a.Header.Get("Sluice-Degraded"))
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[times*99/100]
}
