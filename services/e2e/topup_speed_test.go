//go:build integration

package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// Each hop of a top-up's way, measured: the committed-at, relayed-at and
// applied-at of both gateways' tables, and that a request refused before passes.
func TestTopUpPropagation(t *testing.T) {
	t.Parallel()
	s := selling(t)
	const topUps = 30
	var relay, index, enforced []time.Duration
	for i := range topUps {
		s.passes("/svc/hello", "acme", http.StatusTooManyRequests, http.StatusTooManyRequests)
		s.mustREST("POST", unitsOf("acme")+"/topups", map[string]string{"Idempotency-Key": fmt.Sprint(i)}, map[string]any{"amount": len(s.gates)}, http.StatusCreated)
		for _, g := range s.gates {
			servertest.Eventually(t, 10*time.Second, "the top-up to be in force on "+g.name, func() bool {
				return g.hit("/svc/hello", as("acme")).code == http.StatusOK
			})
			e := g.entry(t, "grants.v1", "acme/units")
			relay = append(relay, time.Duration(e.RelayedAt-e.CommittedAt)*time.Microsecond)
			index = append(index, time.Duration(e.AppliedAt-e.RelayedAt)*time.Microsecond)
			enforced = append(enforced, time.Duration(e.AppliedAt-e.CommittedAt)*time.Microsecond)
		}
	}
	reportHop(t, "commit → relay", relay)
	reportHop(t, "relay → Kafka → index", index)
	reportHop(t, "commit → charged", enforced)
	if worst := enforced[len(enforced)-1]; worst > 10*time.Second {
		t.Errorf("a top-up took %v from commit to both tables", worst)
	}
	if w := s.wallet("acme"); w.Balance != 0 || w.Consumed != topUps*int64(len(s.gates)) {
		t.Errorf("all that was granted is used: %+v", w)
	}
}

// reportHop prints what one took.
func reportHop(t *testing.T, hop string, d []time.Duration) {
	t.Helper()
	slices.Sort(d)
	t.Logf("%-28s p50 %8v   p99 %8v", hop, d[len(d)/2], d[len(d)*99/100])
}
