//go:build integration

package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// A gateway is killed while a service holds requests that passed without Redis:
// they have no answer and no event, and are charged all the same, once.
func TestWhatPassedUncountedIsChargedThoughItsGatewayDies(t *testing.T) {
	const inFlight = 3
	s := sharedStack(t)
	redis := servertest.StartRedis(t)
	s.redisAddr = redis.Addr()
	rule := quota("held", "/svc/held", 100)
	rule.OnStoreLoss = rules.StoreLossOpen
	g := s.holding(t, rule, nil)

	redis.Kill()
	g.dieHolding(t, "/svc/held", inFlight)
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
