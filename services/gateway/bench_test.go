package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/keys"
)

// benchStand has 1,000 rules of other tenants beside those that match: a rate
// and a quota of the tenant, a rate of the user.
func benchStand(b *testing.B) *stand {
	b.Helper()
	s := newStand(b, standOptions{now: time.Now, catalog: []catalog.Service{{
		Name: "demo", Prefix: "/demo/", Endpoints: []catalog.Endpoint{{Pattern: "GET /demo/pay/{id}"}, {Pattern: "POST /demo/pay"}},
	}}})
	for i := range 1000 {
		s.putRule(fmt.Sprintf(`{"id":"r%d","subject":{"kind":"tenant","value":"t%d"},"metric":"m","limit":%s}`, i, i, tenOnce))
	}
	const plenty = `{"algorithm":"gcra","limit":1000000000,"window":"1h","burst":1000000000}`
	s.putRule(ruleJSON("rate", "tenant", "calls", plenty, ""))
	s.putRule(ruleJSON("user", "user", "calls", plenty, ""))
	s.putRule(ruleJSON("month", "tenant", "units", `{"algorithm":"quota","kind":"renewing","limit":1000000000000,"period":"month"}`, ""))
	s.putKey(secret, keys.Key{ID: "k1", TenantID: "acme", UserID: "u1"})
	s.gate.charger.Store = allowing("{t:acme}:t::calls:gcra:3600", "{t:acme}:t::units:quota:month:202607", "{t:acme}:u:u1:calls:gcra:3600")
	return s
}

// instantStore lets everything pass at no cost: what is measured is the gate.
type instantStore struct{ decision limit.Decision }

func (s *instantStore) Decide(context.Context, []limit.Counter) (limit.Decision, error) {
	return s.decision, nil
}

func allowing(keys ...string) *instantStore {
	s := &instantStore{limit.Decision{Allowed: true, Now: noon}}
	for i, key := range keys {
		s.decision.States = append(s.decision.States, limit.State{Key: key, Allowed: true, Limit: 1000, Remaining: int64(500 + i), Reset: time.Minute, Consumed: 500})
	}
	return s
}

// nowhere is an answer that nobody reads.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}

func benchRequest(b *testing.B) *http.Request {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/demo/pay/1", nil)
	r.Header.Set("X-Api-Key", secret)
	return r
}

// BenchmarkStages is the gate's own work: everything but the proxying.
func BenchmarkStages(b *testing.B) {
	s := benchStand(b)
	r := benchRequest(b)
	b.ReportAllocs()
	for b.Loop() {
		w := &nowhere{header: http.Header{}}
		x := newExchange(w, r, s.gate.now())
		for _, stage := range []stage{s.gate.admit, s.gate.identify, s.gate.match, s.gate.decide, s.gate.cut} {
			if !stage(x) {
				b.Fatal("cut")
			}
		}
		s.gate.record(x, http.StatusOK)
		s.gate.setHeaders(x, w.header)
		x.free()
	}
}

// BenchmarkCut is a denied request from its first stage to its answer.
func BenchmarkCut(b *testing.B) {
	s := benchStand(b)
	store := allowing("a", "b", "c")
	store.decision.Allowed, store.decision.States[1].Allowed, store.decision.States[1].RetryAfter = false, false, time.Minute
	s.gate.charger.Store = store
	r := benchRequest(b)
	b.ReportAllocs()
	for b.Loop() {
		s.gate.ServeHTTP(&nowhere{header: http.Header{}}, r)
	}
}

// BenchmarkProxy is a request through everything, over two real connections.
func BenchmarkProxy(b *testing.B) {
	s := benchStand(b)
	quiet := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.Cleanup(quiet.Close)
	s.putService(catalog.Service{Name: "demo", Prefix: "/demo/", Upstreams: []catalog.Upstream{{URL: quiet.URL}}})
	client := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(client.CloseIdleConnections)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.front.URL+"/demo/pay/1", nil)
			if err != nil {
				b.Error(err)
				return
			}
			r.Header.Set("X-Api-Key", secret)
			res, err := client.RoundTrip(r)
			if err != nil || res.StatusCode != http.StatusOK {
				b.Errorf("%v %v", res, err)
				return
			}
			_ = res.Body.Close()
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	s := benchStand(b)
	x := newExchange(&nowhere{header: http.Header{}}, benchRequest(b), s.gate.now())
	for _, stage := range []stage{s.gate.identify, s.gate.match, s.gate.decide} {
		stage(x)
	}
	b.ReportAllocs()
	for b.Loop() {
		x.recorded = false
		s.gate.record(x, http.StatusOK)
	}
}
