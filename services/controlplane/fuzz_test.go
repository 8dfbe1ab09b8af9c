package controlplane_test

import (
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/services/controlplane"
)

// FuzzRuleBody holds that no body makes a 500: what is not a valid rule is
// refused by name, and what is goes on to the database, which is away here.
func FuzzRuleBody(f *testing.F) {
	f.Add(goodRule)
	for _, c := range badInputs {
		if c.is.path == "" && len(c.is.body) < 4096 {
			f.Add(c.is.body)
		}
	}
	f.Add(ruleWith(`"metric"`, `"validFrom":"9999-12-31T23:59:59-23:59","metric"`))
	f.Add(ruleWith(`"metric"`, `"validFrom":"2026-01-01T00:00:00+24:00","metric"`))
	pool, err := pgxpool.New(f.Context(), "postgres://nobody@127.0.0.1:1/none?sslmode=disable&connect_timeout=1")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(pool.Close)
	api, err := controlplane.New(testConfig(), controlplane.Deps{
		Pool: pool, Usage: noUsage{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got := request{method: "POST", path: "/v1/rules", body: body, header: map[string]string{"Content-Type": "application/json"}}.do(t, api)
		p := got.problem(t)
		switch got.Code {
		case http.StatusBadRequest:
			if len(p.Errors) == 0 {
				t.Fatalf("%q: no field is named", body)
			}
		case http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable:
		default:
			t.Fatalf("%q answers %d %s", body, got.Code, got.Body)
		}
	})
}
