//go:build integration

package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// A gateway is killed while a service holds requests that were charged: they
// have no answer, and are given back once by the next start. What was answered
// stands, or was given back before.
func TestCallsAreRefundedThoughTheirGatewayDies(t *testing.T) {
	const inFlight = 3
	s := sharedStack(t)
	arrived, release := make(chan struct{}, inFlight), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "hold":
			arrived <- struct{}{}
			<-release
		case "fail":
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(service.Close)
	open := sync.OnceFunc(func() { close(release) })
	t.Cleanup(open)
	s.process("rest", "controlplane,relay,keeper", nil).start().awaitReady()
	s.mustREST("POST", "/v1/services", nil, catalog.Service{Name: "svc", Prefix: "/svc/", Upstreams: []catalog.Upstream{{URL: service.URL}}}, http.StatusCreated)
	rule := quota("back", "/svc/back", 100)
	rule.RefundOn = []string{"5xx"}
	s.mustREST("POST", "/v1/rules", nil, rule, http.StatusCreated)
	g := s.gateway("gw-1")
	g.start().awaitReady()
	s.awaitEqual(g)

	g.hit("/svc/back", as("acme"))
	g.hit("/svc/back?fail", as("acme"))
	var clients sync.WaitGroup
	for range inFlight {
		clients.Go(func() { g.hit("/svc/back?hold", as("acme")) })
	}
	for range inFlight {
		select {
		case <-arrived:
		case <-time.After(30 * time.Second):
			t.Fatal("the service has not seen the requests")
		}
	}
	g.kill()
	clients.Wait()
	open()
	for range 2 { // the second start finds nothing more to give back
		g.start().awaitReady()
		servertest.Eventually(t, 30*time.Second, "the journal to be empty", func() bool { return g.metric("sluice_settle_pending_records") == 0 })
		g.kill()
	}
	g.start().awaitReady()
	got := g.hit("/svc/back", as("acme"))
	if want := fmt.Sprintf(`"back";r=%d`, 100-2); got.code != http.StatusOK || !strings.HasPrefix(got.header.Get("RateLimit"), want) {
		t.Errorf("%d, RateLimit %q, want %s…", got.code, got.header.Get("RateLimit"), want)
	}
}
