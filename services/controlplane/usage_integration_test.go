//go:build integration

package controlplane_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/usagestore/pgstore"
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
	api, err := controlplane.New(testConfig(), controlplane.Deps{Pool: pool, Usage: pgstore.New(pool)})
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
	pool.Close() // the store is away
	for _, path := range []string{"/v1/usage", "/v1/decisions/none"} {
		got := get(path)
		if got.problem(t); got.Code != 503 || got.Header().Get("Retry-After") == "" {
			t.Errorf("%s with the store away is answered %d", path, got.Code)
		}
	}
}
