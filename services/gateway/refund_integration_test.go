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

// Many clients at once, and every second call fails:
// Redis and the events come to what succeeded, to the unit.
func TestRefundsAddUpOnRedis(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "fail" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(service.Close)
	d.put(catalog.Topic, "work", catalog.Service{
		Name: "work", Prefix: "/work/", Upstreams: []catalog.Upstream{{URL: service.URL}},
		Endpoints: []catalog.Endpoint{{Pattern: "/work/", Cost: new(int64(4))}},
	})
	d.putRule(ruleJSON("units", "tenant", "units", `{"algorithm":"quota","kind":"renewing","limit":1000000,"period":"year"}`, `,"refundOn":["5xx"]`))
	d.putRule(ruleJSON("calls", "tenant", "calls", `{"algorithm":"quota","kind":"renewing","limit":1000000,"period":"year"}`, `,"cost":1`))
	d.putRule(ruleJSON("rate", "tenant", "rate", `{"algorithm":"fixedWindow","limit":1000000,`+year+`}`, `,"refundOn":["503"]`))
	g := d.runReady("gw-1", addr, prefix, nil)
	const clients, each = 16, 10
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			path, want := "/work/x", http.StatusOK
			if i%2 == 1 {
				path, want = "/work/x?fail", http.StatusServiceUnavailable
			}
			for range each {
				if a := do(t, http.MethodGet, g.base+path, acme...); a.StatusCode != want {
					t.Errorf("%d %v", a.StatusCode, a.Header)
				}
			}
		})
	}
	all.Wait()
	const succeeded = clients * each / 2
	requests := clients * each
	used := map[string]int64{}
	servertest.Eventually(t, patience, "the refunds to be made", func() bool {
		a := do(t, http.MethodGet, g.base+"/work/x", acme...)
		requests++
		for _, it := range parseField(t, a.Header.Values("RateLimit")) {
			used[it.name] = 1_000_000 - it.params["r"]
		}
		return used["units"] == 4*int64(requests-succeeded)
	})
	if used["rate"] != used["units"] || used["calls"] != int64(requests) {
		t.Errorf("%v used after %d requests", used, requests)
	}
	var consumed, refunded, amounts int64
	for _, e := range d.usage(requests) {
		for _, c := range e.Charges {
			if c.Metric == "units" {
				amounts += c.Amount
				consumed, refunded = max(consumed, c.Consumed), max(refunded, c.Refunded)
			}
		}
	}
	if amounts != used["units"] || consumed-refunded != used["units"] || refunded != 4*succeeded {
		t.Errorf("events tell %d units, their highest totals %d - %d, want %d", amounts, consumed, refunded, used["units"])
	}
}
