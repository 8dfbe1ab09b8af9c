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
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// A gateway is killed while a service holds requests that passed without Redis:
// they have no answer and no event, and are charged all the same, once.
func TestWhatPassedUncountedIsChargedThoughItsGatewayDies(t *testing.T) {
	const inFlight = 3
	s := sharedStack(t)
	redis := servertest.StartRedis(t)
	s.redisAddr = redis.Addr()
	arrived, release := make(chan struct{}, 10*inFlight), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	t.Cleanup(slow.Close)
	open := sync.OnceFunc(func() { close(release) })
	t.Cleanup(open)
	s.process("rest", "controlplane,relay,keeper", nil).start().awaitReady()
	s.mustREST("POST", "/v1/services", nil, catalog.Service{Name: "svc", Prefix: "/svc/", Upstreams: []catalog.Upstream{{URL: slow.URL}}}, http.StatusCreated)
	rule := quota("held", "/svc/held", 100)
	rule.OnStoreLoss = rules.StoreLossOpen
	s.mustREST("POST", "/v1/rules", nil, rule, http.StatusCreated)
	g := s.gateway("gw-1")
	g.start().awaitReady()
	s.awaitEqual(g)

	redis.Kill()
	var clients sync.WaitGroup
	for range inFlight {
		clients.Go(func() { g.hit("/svc/held", as("acme")) })
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
	restart(t, redis)
	g.start().awaitReady()
	servertest.Eventually(t, 30*time.Second, "what was owed to be charged", func() bool { return g.metric("sluice_settle_pending_records") == 0 })
	g.kill()
	g.start().awaitReady()
	g.awaitWhole()
	got := g.hit("/svc/held", as("acme"))
	if want := fmt.Sprintf(`"held";r=%d`, 100-inFlight-1); got.code != http.StatusOK || !strings.HasPrefix(got.header.Get("RateLimit"), want) {
		t.Errorf("%d, RateLimit %q, want %s…", got.code, got.header.Get("RateLimit"), want)
	}
}
