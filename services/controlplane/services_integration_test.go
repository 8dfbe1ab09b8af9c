//go:build integration

package controlplane_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

const goodService = `{"name":"demo","prefix":"/demo/","upstreams":[{"url":"http://127.0.0.1:9000"}],"endpoints":[{"pattern":"GET /demo/hello"},{"pattern":"GET /demo/report","cost":20}]}`

func TestServiceLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: goodService})
	got := w.must(t, 200, request{method: "GET", path: "/v1/services/demo"})
	if body := got.Body.String(); !strings.Contains(body, `"weight":1`) || !strings.Contains(body, `"cost":1`) {
		t.Errorf("defaults are not shown: %s", body)
	}
	w.put(t, 200, "/v1/services/demo", got.Header().Get("ETag"), got.Body.String())

	cached := strings.Replace(goodService, `"demo"`, `"cached"`, 1)
	cached = strings.NewReplacer("/demo/", "/cached/", `"cost":20`, `"cache":{"enabled":false}`).Replace(cached)
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: strings.Replace(cached, `"upstreams"`, `"cache":{"ttl":"5s"},"upstreams"`, 1)})
	got = w.must(t, 200, request{method: "GET", path: "/v1/services/cached"})
	if body := got.Body.String(); !strings.Contains(body, `"cache":{"enabled":true,"ttl":"5s"`) || !strings.Contains(body, `"cache":{"enabled":false`) {
		t.Errorf("a cache that is given is not on, or one that is off is: %s", body)
	}
	w.put(t, 200, "/v1/services/cached", got.Header().Get("ETag"), got.Body.String())

	taken := strings.Replace(goodService, `"demo"`, `"other"`, 1)
	if p := w.must(t, 409, request{method: "POST", path: "/v1/services", body: taken}).problem(t); p.Errors[0].Field != "prefix" ||
		!strings.HasSuffix(p.Errors[0].Message, `service "demo" has it`) {
		t.Errorf("names %+v", p.Errors)
	}
	w.delete(t, 204, "/v1/services/demo", "*")
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: taken}) // the prefix is free again
	w.must(t, 409, request{method: "POST", path: "/v1/services", body: goodService})
	w.delete(t, 204, "/v1/services/other", "*")
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: goodService})
	w.holdMirror(t, "catalog_v1", catalog.Topic)
}

// What is sold, or ruled, is not taken away without a word.
func TestServiceStaysWhileSomethingNamesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stays := func(says string) {
		t.Helper()
		for _, path := range []string{"/v1/services/demo?dryRun=true", "/v1/services/demo"} {
			if p := w.delete(t, 409, path, "*").problem(t); !strings.HasSuffix(p.Type, "in-use") || !strings.Contains(p.Detail, says) {
				t.Errorf("%s: %+v, want %q", path, p, says)
			}
		}
	}
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: goodService})
	rule := func(id, service string) {
		t.Helper()
		w.must(t, 201, request{method: "POST", path: "/v1/rules", body: `{"id":"` + id + `","subject":{"kind":"tenant","value":"*"},"metric":"calls",` +
			`"scope":{"service":"` + service + `"},"unlimited":true}`})
	}
	rule("elsewhere", "other")
	rule("a", "demo")
	stays("by 1 rule (a);")
	for _, id := range []string{"b", "c", "d"} {
		rule(id, "demo")
	}
	stays("by 4 rules (a, b, c, …);")
	for _, id := range []string{"a", "b", "c", "d"} {
		w.delete(t, 204, "/v1/rules/"+id, "*")
	}
	w.must(t, 201, request{method: "POST", path: "/v1/customers", body: `{"id":"acme","name":"Acme"}`})
	sells := `{"id":"pro","currency":"EUR","period":"month","rules":[{"metric":"calls","scope":{"service":"%s"},"limit":{"algorithm":"quota","kind":"renewing","limit":5}}]}`
	w.must(t, 201, request{method: "POST", path: "/v1/plans", body: fmt.Sprintf(sells, "demo")})
	stays("by 1 plan (pro);")
	s, at := w.subscribe(t, toPro)
	stays("by 1 plan (pro), 1 active subscription (" + s.ID + ");")
	w.put(t, 200, "/v1/plans/pro", "*", fmt.Sprintf(sells, "other"))
	stays("by 1 active subscription (" + s.ID + ");")
	w.delete(t, 204, at, "*")
	w.delete(t, 204, "/v1/services/demo", "*")
}

// TestDatabaseComesBack ends every session of the control plane under it: the
// next requests are answered, or refused with 503, and never with 500.
func TestDatabaseComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, request{method: "POST", path: "/v1/rules", body: goodRule})
	admin, err := pgx.Connect(t.Context(), w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	for range 10 {
		if _, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> $1`, w.db.PgConn().PID()); err != nil {
			t.Fatal(err)
		}
		servertest.Eventually(t, 10*time.Second, "a write to succeed again", func() bool {
			got := request{method: "PUT", path: "/v1/rules/a", body: goodRule, header: anyVersion}.do(t, w)
			if got.Code != 200 && got.Code != 503 {
				t.Fatalf("answers %d %s", got.Code, got.Body)
			}
			return got.Code == 200
		})
	}
}
