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

// Tenant A floods at ten times its limit: nothing of B is denied, and B waits
// hardly longer.
func TestNoisyTenantDisturbsNoOther(t *testing.T) {
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	d.putRule(ruleJSON("rate", "tenant", "calls", `{"algorithm":"gcra","limit":50,"window":"1s","burst":50}`, ""))
	g := d.runReady("gw", addr, prefix, nil)
	quiet := measure(t, g, "b", 200)
	ctx, cancel := context.WithCancel(t.Context())
	var (
		noise          sync.WaitGroup
		denied, passed atomic.Int64
	)
	for range 5 { // each a hundred a second
		noise.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				switch a := do(t, http.MethodGet, g.base+"/demo/x", "X-Tenant-Id", "a"); a.StatusCode {
				case http.StatusOK:
					passed.Add(1)
				case http.StatusTooManyRequests:
					denied.Add(1)
				default:
					t.Errorf("a is answered %d", a.StatusCode)
				}
				<-pace.C
			}
		})
	}
	servertest.Eventually(t, patience, "a to be over its limit", func() bool { return denied.Load() > 50 })
	noisy := measure(t, g, "b", 200)
	cancel()
	noise.Wait()
	t.Logf("b's p99 is %s quiet, %s beside a, which had %d passed and %d denied (aim: 1.5 times)", quiet, noisy, passed.Load(), denied.Load())
	if noisy > 10*quiet+50*time.Millisecond {
		t.Errorf("b's p99 rose from %s to %s", quiet, noisy)
	}
}

// measure asks at 40 a second, of 50, fails on any denial, and returns the p99.
func measure(t *testing.T, g *running, tenant string, n int) time.Duration {
	t.Helper()
	pace := time.NewTicker(25 * time.Millisecond)
	defer pace.Stop()
	took := make([]time.Duration, 0, n)
	for range n {
		<-pace.C
		began := time.Now()
		if a := do(t, http.MethodGet, g.base+"/demo/x", "X-Tenant-Id", tenant); a.StatusCode != http.StatusOK {
			t.Errorf("%s is answered %d", tenant, a.StatusCode)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[n*99/100]
}
