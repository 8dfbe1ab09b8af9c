//go:build integration

package gateway

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// Under many clients at once the counters hold what the service said, to the
// unit: charged 4 each, corrected to 1 or 9.
func TestCorrectedCostsAddUpOnRedis(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Sluice-Cost", r.URL.Query().Get("cost"))
	}))
	t.Cleanup(service.Close)
	d.put(catalog.Topic, "work", catalog.Service{
		Name: "work", Prefix: "/work/", CostHeader: "X-Sluice-Cost", Upstreams: []catalog.Upstream{{URL: service.URL}},
		Endpoints: []catalog.Endpoint{{Pattern: "/work/", Cost: new(int64(4))}},
	})
	d.putRule(ruleJSON("units", "tenant", "units", `{"algorithm":"quota","kind":"renewing","limit":1000000,"period":"year"}`, ""))
	d.putRule(ruleJSON("rate", "tenant", "units", `{"algorithm":"fixedWindow","limit":1000000,`+year+`}`, ""))
	g := d.runReady("gw-1", addr, prefix, nil)
	const clients, each = 16, 10
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			cost := []string{"1", "9"}[i%2]
			for range each {
				if a := do(t, http.MethodGet, g.base+"/work/x?cost="+cost, acme...); a.StatusCode != http.StatusOK || a.Header.Get("X-Sluice-Cost") != "" {
					t.Errorf("%d %v", a.StatusCode, a.Header)
				}
			}
		})
	}
	all.Wait()
	const used = clients * each * (1 + 9) / 2
	a := do(t, http.MethodGet, g.base+"/work/x?cost=0", acme...)
	for _, it := range parseField(t, a.Header.Values("RateLimit")) {
		if left := it.params["r"]; left != 1_000_000-used {
			t.Errorf("%s: %d units are left, want %d", it.name, left, 1_000_000-used)
		}
	}
	var consumed, refunded, amounts int64
	for _, e := range d.usage(clients*each + 1) {
		for _, c := range e.Charges {
			amounts += c.Amount
			consumed, refunded = max(consumed, c.Consumed), max(refunded, c.Refunded)
		}
	}
	if amounts != used || consumed-refunded != used {
		t.Errorf("events tell %d units, their highest totals %d - %d, want %d", amounts, consumed, refunded, used)
	}
}
