//go:build integration

package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// A gateway is killed while a service holds a thousand requests that were charged: they
// have no answer, and are given back once by the next start. What was answered
// stands, or was given back before.
func TestCallsAreRefundedThoughTheirGatewayDies(t *testing.T) {
	const inFlight, limited = 1000, 2000
	rule := quota("back", "/svc/back", limited)
	rule.RefundOn = []string{"5xx"}
	g := sharedStack(t).holding(t, rule, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "fail" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})

	g.hit("/svc/back", as("acme"))
	g.hit("/svc/back?fail", as("acme"))
	g.dieHolding(t, "/svc/back", inFlight)
	for range 2 { // the second start finds nothing more to give back
		g.start().awaitReady()
		servertest.Eventually(t, 30*time.Second, "the journal to be empty", func() bool { return g.metric("sluice_settle_pending_records") == 0 })
		g.kill()
	}
	g.start().awaitReady()
	got := g.hit("/svc/back", as("acme"))
	if want := fmt.Sprintf(`"back";r=%d`, limited-2); got.code != http.StatusOK || !strings.HasPrefix(got.header.Get("RateLimit"), want) {
		t.Errorf("%d, RateLimit %q, want %s…", got.code, got.header.Get("RateLimit"), want)
	}
}
