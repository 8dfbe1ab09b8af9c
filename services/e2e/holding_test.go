//go:build integration

package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// holding is a gateway before a service that holds back requests with the query
// hold, and answers others.
type holding struct {
	*gate
	arrived chan struct{}
	release func()
}

// holding starts what a rule of service svc needs, and a gateway that has it.
// answer may be nil: 200.
func (s *stack) holding(t *testing.T, rule rules.Rule, answer http.HandlerFunc) *holding {
	t.Helper()
	released := make(chan struct{})
	h := &holding{arrived: make(chan struct{}, 100), release: sync.OnceFunc(func() { close(released) })}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.RawQuery == "hold":
			h.arrived <- struct{}{}
			<-released
		case answer != nil:
			answer(w, r)
		}
	}))
	t.Cleanup(service.Close)
	t.Cleanup(h.release)
	s.process("rest", "controlplane,relay,keeper", nil).start().awaitReady()
	s.mustREST("POST", "/v1/services", nil, catalog.Service{Name: "svc", Prefix: "/svc/", Upstreams: []catalog.Upstream{{URL: service.URL}}}, http.StatusCreated)
	s.mustREST("POST", "/v1/rules", nil, rule, http.StatusCreated)
	h.gate = s.gateway("gw-1")
	h.start().awaitReady()
	s.awaitEqual(h.gate)
	return h
}

// dieHolding kills the gateway while the service holds n requests to a path.
func (h *holding) dieHolding(t *testing.T, path string, n int) {
	t.Helper()
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			// A burst of a thousand may find the store's budget used up.
			for h.hit(path+"?hold", as("acme")).code == http.StatusServiceUnavailable {
			}
		})
	}
	for range n {
		select {
		case <-h.arrived:
		case <-time.After(2 * time.Minute):
			t.Fatal("the service has not seen the requests")
		}
	}
	h.kill()
	clients.Wait()
	h.release()
}
