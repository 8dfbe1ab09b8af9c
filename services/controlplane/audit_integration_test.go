//go:build integration

package controlplane_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

func readAudit(t *testing.T, w world, query string) (entries []store.AuditEntry, next string) {
	t.Helper()
	var page api.Page[store.AuditEntry]
	got := w.must(t, 200, request{method: "GET", path: "/v1/audit?" + query, token: "Bearer " + readOnlyToken})
	if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	return page.Items, page.Next
}

func TestAuditActorCannotBeForged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forged := map[string]string{"If-Match": "*"}
	for _, name := range []string{
		"X-Actor", "X-User", "X-User-Id", "X-Forwarded-User", "X-Remote-User", "Remote-User", "From",
		"X-Tenant-Id", "X-Auth-Request-User", "Cookie", "Actor", "Proxy-Authorization", "X-Api-Key",
	} {
		forged[name] = "mallory"
	}
	w.must(t, 201, request{method: "POST", path: "/v1/rules?", body: goodRule, header: forged})
	w.must(t, 200, request{method: "PUT", path: "/v1/rules/a", body: goodRule, header: forged})
	w.must(t, 204, request{method: "DELETE", path: "/v1/rules/a", header: forged})
	w.must(t, 400, request{method: "POST", path: "/v1/rules?actor=mallory", body: goodRule})
	w.must(t, 400, request{method: "POST", path: "/v1/rules", body: ruleWith(`"id"`, `"actor":"mallory","id"`)})
	if n := w.count(t, `SELECT count(*) FROM audit WHERE actor <> 'alice' OR audit::text LIKE '%mallory%'`); n != 0 {
		t.Fatalf("%d entries are forged", n)
	}
	entries, _ := readAudit(t, w, "")
	if len(entries) != 3 {
		t.Fatalf("%d entries for 3 changes", len(entries))
	}
	for i, action := range []string{"delete", "update", "create"} {
		e := entries[i]
		if e.Action != action || e.Actor != "alice" || e.Kind != "rule" || e.Key != "a" || e.At.IsZero() ||
			(e.Before == nil) != (action == "create") || (e.After == nil) != (action == "delete") {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
}

func TestAuditPagesAndFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.countsFrom(t, "audit", 1<<33) // more rows than 32 bits count
	for i := range 5 {
		w.must(t, 201, request{method: "POST", path: "/v1/rules", body: ruleNamed(fmt.Sprint("r", i))})
	}
	w.must(t, 201, request{method: "POST", path: "/v1/keys", body: `{"tenantId":"acme"}`})
	var seen []string
	for next := ""; ; {
		var entries []store.AuditEntry
		if entries, next = readAudit(t, w, "kind=rule&limit=2&cursor="+next); len(entries) == 0 {
			t.Fatal("an empty page")
		}
		for _, e := range entries {
			seen = append(seen, e.Key)
		}
		if next == "" {
			break
		}
	}
	if got := strings.Join(seen, " "); got != "r4 r3 r2 r1 r0" {
		t.Errorf("pages hold %s", got)
	}
	for query, want := range map[string]int{
		"id=r1": 1, "kind=key": 1, "actor=alice": 6, "actor=bob": 0, "from=2100-01-01T00:00:00Z": 0,
		"to=2100-01-01T00:00:00Z": 6, "from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00%2B03:00": 0,
		"from=0001-01-01T00:00:00Z": 6, "to=0001-01-01T00:00:00.000001Z": 0, "to=0000-12-31T00:00:00Z": 0,
	} {
		if entries, _ := readAudit(t, w, query); len(entries) != want {
			t.Errorf("%s finds %d, want %d", query, len(entries), want)
		}
	}
}
