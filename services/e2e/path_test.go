//go:build integration

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// running starts a whole house on shared servers: all but the gateways in one
// process, and two gateways.
func running(t *testing.T) *stack {
	t.Helper()
	s := sharedStack(t)
	rest := s.process("rest", "controlplane,relay,indexer,keeper", nil).start()
	rest.awaitReady()
	s.service()
	for _, id := range []string{"gw-1", "gw-2"} {
		s.gateway(id).start()
	}
	for _, g := range s.gates {
		g.awaitReady()
		s.awaitEqual(g)
	}
	return s
}

// One rule, one request, from REST to the analyst's answer and the checkpoint.
func TestOneRuleOneRequest(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.mustREST("POST", "/v1/rules", nil, quota("reports", "/svc/report", 3), http.StatusCreated)
	s.awaitEqualAll()

	var denied answer
	for i := range 5 {
		got := s.gates[i%2].hit("/svc/report", as("acme"))
		if want := map[bool]int{true: 200, false: 429}[i < 3]; got.code != want {
			t.Fatalf("request %d: %d, want %d: %s", i, got.code, want, got.body)
		}
		denied = got
	}
	if got := s.served.Load(); got != 3 {
		t.Errorf("the service saw %d requests, want the 3 that passed", got)
	}
	id := denied.header.Get("Sluice-Decision-Id")
	var event usage.Event
	servertest.Eventually(t, 30*time.Second, "the denied decision to be found by its id", func() bool {
		got := s.rest("GET", "/v1/decisions/"+id, nil, nil)
		return got.code == http.StatusOK && json.Unmarshal([]byte(got.body), &event) == nil
	})
	if event.Decision != usage.DecisionDeny || event.StatusCode != 429 || event.RuleID != "reports" || event.TenantID != "acme" || event.Algo != usage.AlgoRenewingQuota {
		t.Errorf("document of the denied decision: %+v", event)
	}
	page := decode[struct {
		Events []usage.Event `json:"items"`
	}](t, s.mustREST("GET", "/v1/usage?tenantId=acme&decision=DENY&limit=10", nil, nil, 200).body)
	if len(page.Events) != 2 {
		t.Errorf("GET /v1/usage finds %d denied decisions, want 2", len(page.Events))
	}
	s.awaitCheckpoint("acme", "reports", 3)
	for _, g := range s.gates {
		g.stop()
	}
}

// Deleting a rule and creating it again keeps what was used.
func TestRecreatedRuleKeepsUse(t *testing.T) {
	t.Parallel()
	s := running(t)
	rule := quota("kept", "/svc/kept", 5)
	s.mustREST("POST", "/v1/rules", nil, rule, http.StatusCreated)
	s.awaitEqualAll()
	for range 4 {
		s.gates[0].hit("/svc/kept", as("acme"))
	}
	s.mustREST("DELETE", "/v1/rules/kept", anyVersion, nil, http.StatusNoContent)
	s.awaitEqualAll()
	if got := s.gates[1].hit("/svc/kept", as("acme")); got.code != 200 {
		t.Fatalf("without the rule: %d", got.code)
	}
	s.mustREST("POST", "/v1/rules", nil, rule, http.StatusCreated)
	s.awaitEqualAll()
	codes := []int{s.gates[0].hit("/svc/kept", as("acme")).code, s.gates[1].hit("/svc/kept", as("acme")).code}
	if !slices.Equal(codes, []int{200, 429}) {
		t.Errorf("after the rule came back: %v, want one unit left", codes)
	}
}

// A key made over REST identifies at once, and no longer once it is revoked.
func TestKeyFromBirthToRevocation(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.mustREST("POST", "/v1/rules", nil, fixed("keyed", "/svc/hello", 2), http.StatusCreated)
	created := s.mustREST("POST", "/v1/keys", nil, map[string]any{"name": "k", "tenantId": "keyed-tenant"}, http.StatusCreated)
	key := decode[struct {
		ID, Key string
	}](t, created.body)
	s.awaitEqualAll()
	with := map[string]string{"X-Api-Key": key.Key, "X-Tenant-Id": "somebody-else"}
	var codes []int
	for i := range 3 {
		codes = append(codes, s.gates[i%2].hit("/svc/hello", with).code)
	}
	if !slices.Equal(codes, []int{200, 200, 429}) {
		t.Errorf("with the key: %v; the forged tenant header must not count", codes)
	}
	s.mustREST("PATCH", "/v1/keys/"+url.PathEscape(key.ID), anyVersion, map[string]any{"status": keys.StatusRevoked}, http.StatusOK)
	s.awaitEqualAll()
	if got := s.gates[0].hit("/svc/hello", with); got.code != http.StatusForbidden {
		t.Errorf("revoked key: %d, want 403", got.code)
	}
}

// Each hop of a rule's way, measured: the committed-at, relayed-at and
// applied-at of both gateways' tables, and the first request that is judged
// by the new rule.
func TestRulePropagation(t *testing.T) {
	t.Parallel()
	s := running(t)
	const writes = 60
	var relay, index, enforced []time.Duration
	for i := range writes {
		id := fmt.Sprintf("prop-%d", i)
		s.mustREST("POST", "/v1/rules", nil, fixed(id, "/svc/"+id, 0), http.StatusCreated)
		for _, g := range s.gates {
			servertest.Eventually(t, 10*time.Second, id+" to be enforced on "+g.name, func() bool {
				return g.hit("/svc/"+id, as("acme")).code == http.StatusTooManyRequests
			})
			e := g.entry(t, "rules.v1", id)
			relay = append(relay, time.Duration(e.RelayedAt-e.CommittedAt)*time.Microsecond)
			index = append(index, time.Duration(e.AppliedAt-e.RelayedAt)*time.Microsecond)
			enforced = append(enforced, time.Duration(e.AppliedAt-e.CommittedAt)*time.Microsecond)
		}
	}
	reportHop(t, "commit → relay", relay)
	reportHop(t, "relay → Kafka → index", index)
	reportHop(t, "commit → enforced", enforced)
	if worst := enforced[len(enforced)-1]; worst > 10*time.Second {
		t.Errorf("a rule took %v from commit to both indices", worst)
	}
}
