//go:build integration

package gateway

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge/journal"
)

// returning is two gateways on one Redis that goes away and comes back, and how
// many requests of one tenant they let pass.
type returning struct {
	gates []*running

	mu       sync.Mutex
	passed   int
	byShares map[*running]bool // has denied by its share
	byStore  map[*running]bool // has denied by the store, after a time
	settled  time.Time
}

func (r *returning) ask(t testing.TB, g *running) {
	t.Helper()
	asked := time.Now()
	a := do(t, http.MethodGet, g.base+"/demo/x", "X-Tenant-Id", "acme")
	degraded := a.Header.Get("Sluice-Degraded") != ""
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case a.StatusCode == http.StatusOK:
		r.passed++
	case a.StatusCode != http.StatusTooManyRequests:
		t.Errorf("%d %s", a.StatusCode, a.body)
	case degraded:
		r.byShares[g] = true
	case !r.settled.IsZero() && asked.After(r.settled):
		r.byStore[g] = true
	}
}

// all reports whether each gateway is among those.
func (r *returning) all(those *map[*running]bool) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(*those) == len(r.gates)
	}
}

// flood has both asked until it is stopped.
func (r *returning) flood(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			pace := time.NewTicker(3 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				r.ask(t, r.gates[i%len(r.gates)])
				select {
				case <-pace.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return sync.OnceFunc(func() { cancel(); clients.Wait() })
}

// Two gateways under load give out their shares while Redis is away. When it is
// back, all that passes beyond the limit is one share more of each gateway, for
// Redis may grant once again what a gateway has not charged yet.
func TestReturnOfRedisGrantsAtMostOneShareMore(t *testing.T) {
	t.Parallel()
	const sixty, shares = 60, 30 // what is left when Redis goes away is the sum of the shares
	for name, limit := range map[string]string{
		"fixedWindow": `{"algorithm":"fixedWindow","limit":60,` + year + `}`,
		"quota":       `{"algorithm":"quota","kind":"renewing","limit":60,"period":"year"}`,
		"gcra":        `{"algorithm":"gcra","limit":1,"window":"24h","burst":60}`, // refills nothing meanwhile
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := onSharedKafka(t)
			server := servertest.StartRedis(t)
			free := new(int64)
			d.put(catalog.Topic, "demo", catalog.Service{
				Name: "demo", Prefix: "/demo/", Upstreams: []catalog.Upstream{{URL: d.upstream.URL}},
				Endpoints: []catalog.Endpoint{{Pattern: "GET /demo/free", Cost: free}},
			})
			d.putRule(ruleJSON("sixty", "tenant", "calls", limit, `,"onStoreLoss":"local"`))
			r := &returning{byShares: map[*running]bool{}, byStore: map[*running]bool{}}
			for _, id := range []string{"gw-1", "gw-2"} {
				r.gates = append(r.gates, d.runReady(id, server.Addr(), "", func(c *Config) {
					c.Store.Budget, c.Store.Timeout = 50*time.Millisecond, 200*time.Millisecond
				}))
			}
			each := func(what string, cond func(g *running) bool) {
				t.Helper()
				for _, g := range r.gates {
					servertest.Eventually(t, patience, what, func() bool { return cond(g) })
				}
			}
			each("the other gateway to be known", func(g *running) bool { return g.counters.members.Position().Live == 2 })
			for i := range sixty / 2 {
				r.ask(t, r.gates[i%2])
			}
			paid := func(g *running) bool { return g.gate.charger.Journal.(*journal.Journal).Pending() == 0 }
			each("what a late answer left to be settled", paid)
			each("both to remember the same remainder", func(g *running) bool {
				return do(t, http.MethodGet, g.base+"/demo/free", "X-Tenant-Id", "acme").Header.Get("Sluice-Degraded") == ""
			})
			must(t, server.Pause())
			stop := r.flood(t)
			defer stop()
			servertest.Eventually(t, patience, "the shares to be spent", r.all(&r.byShares))
			must(t, server.Resume())
			each("the debts to be settled", func(g *running) bool {
				return paid(g) && g.counters.store.Available()
			})
			r.mu.Lock()
			r.settled = time.Now()
			r.mu.Unlock()
			servertest.Eventually(t, patience, "Redis to deny", r.all(&r.byStore))
			stop()
			if r.passed > sixty+shares {
				t.Errorf("%d of %d passed, and the shares were %d in all", r.passed, sixty, shares)
			}
			t.Logf("%d of %d passed", r.passed, sixty)
		})
	}
}
