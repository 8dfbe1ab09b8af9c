//go:build integration

package gateway

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/settle"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// returning is two gateways on one Redis that goes away and comes back, and how
// many requests of one tenant they let pass.
type returning struct {
	gates []*running

	mu     sync.Mutex
	passed int
	// shared are those of them that passed by a share and were asked for after
	// Redis was back: a machine that is late enough opens a breaker once more.
	shared   int
	back     time.Time
	byShares map[*running]bool // has denied by its share
	byStore  map[*running]bool // has denied by the store, after a time
	settled  time.Time
}

func (r *returning) ask(t testing.TB, g *running) {
	t.Helper()
	asked := time.Now()
	a := do(t, http.MethodGet, g.base+"/demo/x", "X-Tenant-Id", "acme")
	degraded := a.Header.Get(headerDegraded) != ""
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case a.StatusCode == http.StatusOK:
		r.passed++
		if degraded && !r.back.IsZero() && asked.After(r.back) {
			r.shared++
		}
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

// Two gateways under load give out their shares while Redis is away; when it is
// back it does not grant the same units again before it has been told of them.
func TestReturnOfRedisGrantsNothingTwice(t *testing.T) {
	t.Parallel()
	const sixty = 60
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
			each("the other gateway to be known", func(g *running) bool { return g.counters.fleet.Place().Live == 2 })
			for i := range sixty / 2 {
				r.ask(t, r.gates[i%2])
			}
			paid := func(g *running) bool { return g.gate.debts.(*settle.Settler).Pending() == 0 }
			each("what a late answer left to be settled", paid)
			each("both to remember the same remainder", func(g *running) bool {
				return do(t, http.MethodGet, g.base+"/demo/free", "X-Tenant-Id", "acme").Header.Get(headerDegraded) == ""
			})
			must(t, server.Pause())
			stop := r.flood(t)
			defer stop()
			servertest.Eventually(t, patience, "the shares to be spent", r.all(&r.byShares))
			each("the other's debt to be known", func(g *running) bool { return g.counters.fleet.Owed() })
			r.mu.Lock()
			r.back = time.Now()
			r.mu.Unlock()
			must(t, server.Resume())
			each("the debts to be settled", func(g *running) bool {
				return paid(g) && !g.counters.fleet.Owed() && g.counters.store.Available()
			})
			r.mu.Lock()
			r.settled = time.Now()
			r.mu.Unlock()
			servertest.Eventually(t, patience, "Redis to deny", r.all(&r.byStore))
			stop()
			if r.passed > sixty+r.shared {
				t.Errorf("%d of %d passed, %d of them by a share after the return", r.passed, sixty, r.shared)
			}
			t.Logf("%d of %d passed, %d of them by a share after the return", r.passed, sixty, r.shared)
		})
	}
}
