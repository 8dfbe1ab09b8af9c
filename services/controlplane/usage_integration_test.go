//go:build integration

package controlplane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/usagestore/pgstore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/controlplane"
)

func TestUsageOfARealStore(t *testing.T) {
	t.Parallel()
	dsn := servertest.Postgres(t)
	if err := migrate.Up(t.Context(), dsn, "usage"); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	store := pgstore.New(pool)
	api, err := controlplane.New(testConfig(), controlplane.Deps{Pool: pool, Usage: store})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) *answer {
		return request{method: "GET", path: path, token: "Bearer " + readOnlyToken}.do(t, api)
	}
	if got := get("/v1/usage?tenantId=acme"); got.Code != 200 || !strings.Contains(got.Body.String(), `"items":[]`) {
		t.Errorf("no events are %d %s", got.Code, got.Body)
	}
	if got := get("/v1/usage?cursor=nonsense"); got.Code != 400 || got.problem(t).Errors[0].Field != "cursor" {
		t.Errorf("a bad cursor is answered %d %s", got.Code, got.Body)
	}
	if got := get("/v1/decisions/none"); got.Code != 404 {
		t.Errorf("an unknown decision is answered %d", got.Code)
	}
	// What brings a reservation back is the keeper's alone.
	stored, err := store.Put(t.Context(), []usage.Event{{
		ID: "0198a2b0-0000-7000-8000-000000000001", TS: time.Now(), TenantID: "acme", Service: "llm", Endpoint: "/llm", Method: "POST", Decision: usage.DecisionAllow,
		StatusCode: 201, Reservation: "job-1", ReservationState: &usage.ReservationState{Attempt: 1, State: 1, Record: `{"secret":"of keepers"}`}, Gateway: "gw",
	}})
	if err != nil || stored[0].Err != nil {
		t.Fatal(err, stored)
	}
	for _, path := range []string{"/v1/usage?tenantId=acme", "/v1/decisions/0198a2b0-0000-7000-8000-000000000001"} {
		got := get(path)
		if body := got.Body.String(); got.Code != 200 || !strings.Contains(body, `"reservation":"job-1"`) || strings.Contains(body, "reservationState") || strings.Contains(body, "of keepers") {
			t.Errorf("%s: %d %s", path, got.Code, body)
		}
	}
	pool.Close() // the store is away
	for _, path := range []string{"/v1/usage", "/v1/decisions/none"} {
		got := get(path)
		if got.problem(t); got.Code != 503 || got.Header().Get("Retry-After") == "" {
			t.Errorf("%s with the store away is answered %d", path, got.Code)
		}
	}
}
