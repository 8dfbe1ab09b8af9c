//go:build integration

package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// selling is a running house in which every tenant's units are prepaid, and a
// second service whose requests cost more.
func selling(t *testing.T) *stack {
	t.Helper()
	s := running(t)
	s.mustREST("POST", "/v1/services", nil, catalog.Service{
		Name: "export", Prefix: "/export/", Upstreams: []catalog.Upstream{{URL: s.upstream.URL}},
		Endpoints: []catalog.Endpoint{{Pattern: "GET /export/csv", Cost: number(20)}, {Pattern: "GET /export/all", Cost: number(200)}},
	}, http.StatusCreated)
	s.mustREST("POST", "/v1/rules", nil, rules.Rule{
		ID: "units", Subject: rules.Subject{Kind: rules.SubjectTenant, Value: "*"}, Metric: "units",
		Limit: &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaPrepaid, Overdraft: rules.OverdraftOnce},
	}, http.StatusCreated)
	for _, id := range []string{"acme", "beta", "gamma", "delta"} {
		s.mustREST("POST", "/v1/customers", nil, map[string]any{"id": id, "name": id}, http.StatusCreated)
	}
	s.awaitEqualAll()
	return s
}

func unitsOf(customer string) string { return "/v1/customers/" + customer + "/wallets/units" }

// topUp grants units and waits until every gateway knows it.
func (s *stack) topUp(customer, key string, body map[string]any) {
	s.t.Helper()
	s.mustREST("POST", unitsOf(customer)+"/topups", map[string]string{"Idempotency-Key": key}, body, http.StatusCreated)
	s.awaitEqualAll()
}

type walletAnswer struct {
	Granted, Consumed, Refunded, Forfeited, Balance int64
	Source                                          string
	Grants                                          []struct {
		Amount, Left int64
		Priority     int
	}
}

func (s *stack) wallet(customer string) walletAnswer {
	s.t.Helper()
	return decode[walletAnswer](s.t, s.mustREST("GET", unitsOf(customer), nil, nil, http.StatusOK).body)
}

// passes holds what a request on each gateway in turn is answered.
func (s *stack) passes(path, tenant string, want ...int) {
	s.t.Helper()
	for i, code := range want {
		got := s.gates[i%len(s.gates)].hit(path, as(tenant))
		if got.code != code {
			s.t.Fatalf("%s of %s, request %d: %d, want %d: %s", path, tenant, i, got.code, code, got.body)
		}
		if _, told := got.header["Retry-After"]; told && code == http.StatusTooManyRequests {
			s.t.Errorf("an empty wallet says Retry-After: %v", got.header)
		}
	}
}

// Units are bought, spent, overdrawn, forfeited, from REST to both gateways, and in
// the end everybody who counts them says the same.
func TestWalletStories(t *testing.T) {
	t.Parallel()
	s := selling(t)

	// Overdraft, step by step.
	s.passes("/svc/hello", "acme", 429, 429)
	s.topUp("acme", "1", map[string]any{"amount": 100})
	s.passes("/export/all", "acme", 200, 429)
	s.passes("/svc/hello", "acme", 429)
	if w := s.wallet("acme"); w.Balance != -100 || w.Consumed != 200 || w.Source != "counters" {
		t.Errorf("after the overdraft %+v", w)
	}
	s.topUp("acme", "2", map[string]any{"amount": 100})
	s.topUp("acme", "2", map[string]any{"amount": 100}) // a repetition pays nothing
	s.passes("/svc/hello", "acme", 429)
	s.topUp("acme", "3", map[string]any{"amount": 2})
	s.passes("/svc/hello", "acme", 200, 200, 429)

	// Several services with other costs, one wallet; the grant of higher priority first.
	s.topUp("beta", "1", map[string]any{"amount": 50})
	s.topUp("beta", "2", map[string]any{"amount": 50, "priority": 1})
	s.passes("/export/csv", "beta", 200, 200)
	s.passes("/svc/hello", "beta", 200, 200, 200, 200, 200)
	if w := s.wallet("beta"); w.Balance != 55 || len(w.Grants) != 2 || w.Grants[0].Priority != 1 || w.Grants[0].Left != 5 || w.Grants[1].Left != 50 {
		t.Errorf("after two services %+v", w)
	}

	// Many race for the last credits.
	s.topUp("gamma", "1", map[string]any{"amount": 25})
	if got := s.storm(200, "/svc/hello", as("gamma")); got[200] != 25 || got[429] != 175 {
		t.Errorf("of 200 at 25 units: %v", got)
	}

	// A grant that ends: what is left of it goes, once, and nobody can spend it.
	s.topUp("delta", "1", map[string]any{"amount": 40, "expiresAt": time.Now().Add(10 * time.Second).UTC().Format(time.RFC3339Nano)})
	s.passes("/svc/hello", "delta", 200, 200)
	servertest.Eventually(t, time.Minute, "the grant to end", func() bool {
		w := s.wallet("delta")
		return w.Forfeited == 38 && len(w.Grants) == 0 // in Redis, and a moment later in the ledger
	})
	s.passes("/svc/hello", "delta", 429, 429)
	ledger := decode[struct {
		Items []struct {
			Kind   string
			Amount int64
		}
	}](t, s.mustREST("GET", unitsOf("delta")+"/ledger", nil, nil, http.StatusOK).body)
	if got := fmt.Sprint(ledger.Items); got != "[{forfeit 38} {topup 40}]" {
		t.Errorf("the ledger says %s", got)
	}
	if w := s.wallet("delta"); w.Balance != 0 || len(w.Grants) != 0 {
		t.Errorf("after the end %+v", w)
	}
	s.holdReconciled("{t:beta}:t::units:quota")
}
