//go:build integration

package controlplane_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
)

// warnings are those of an answer, each as code, id and field.
func (a *answer) warnings(t *testing.T) string {
	t.Helper()
	var body struct{ Warnings []api.Warning }
	if err := json.Unmarshal(a.Body.Bytes(), &body); err != nil {
		t.Fatalf("%s: %v", a.Body, err)
	}
	var all []string
	for _, w := range body.Warnings {
		if w.Message == "" {
			t.Errorf("no message: %+v", w)
		}
		all = append(all, w.Code+" "+w.ID+" "+w.Field)
	}
	return strings.Join(all, ", ")
}

const demoService = `{"name":"demo","prefix":"/demo/","upstreams":[{"url":"http://a"}],"endpoints":[{"pattern":"GET /demo/{id}"}]}`

func scopedRule(id, scope string) string {
	return fmt.Sprintf(`{"id":%q,"subject":{"kind":"tenant","value":"*"},"metric":"m","scope":%s,"limit":{"algorithm":"gcra","limit":5,"window":"1m"}}`, id, scope)
}

// Every warning is in the answer of a write and of its dry run alike, and a dry
// run leaves nothing behind.
func TestWritesAndTheirDryRunsWarn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: demoService})
	w.must(t, 201, request{method: "POST", path: "/v1/rules", body: scopedRule("b", `{}`)})
	for _, c := range []struct{ path, body, warns string }{
		{"/v1/rules", scopedRule("known", `{"service":"demo","endpoint":"GET /demo/{id}"}`), ""},
		{"/v1/rules", scopedRule("lost", `{"service":"nosuch"}`), "unknown-service lost scope.service"},
		{"/v1/rules", scopedRule("astray", `{"service":"demo","endpoint":"GET /demo/helo"}`), "unknown-endpoint astray scope.endpoint"},
		{"/v1/rules", scopedRule("c", `{}`), "unreachable-rule c id"},
		{"/v1/rules", scopedRule("a", `{}`), "unreachable-rule b id, unreachable-rule c id"}, // the written one wins
		{"/v1/overrides", `{"subject":{"kind":"tenant","value":"acme"},"metric":"m","limit":3}`, ""},
		{"/v1/overrides", `{"subject":{"kind":"tenant","value":"acme"},"metric":"m","window":"1h","limit":3}`, "unmatched-override tenant:acme:m:1h metric"},
		{"/v1/overrides", `{"subject":{"kind":"user","value":"acme/u"},"metric":"m","limit":3}`, "unmatched-override user:acme%2Fu:m metric"},
		{"/v1/plans", `{"id":"pro","currency":"EUR","rules":[{"metric":"x","unlimited":true},{"metric":"y","unlimited":true,"scope":{"service":"nosuch"}}]}`, "unknown-service pro rules[1].scope.service"},
		{"/v1/customers", goodCustomer, ""},
	} {
		before := w.rows(t)
		tried := w.must(t, 201, request{method: "POST", path: c.path + "?dryRun=true", body: c.body})
		after := w.rows(t)
		if got := tried.warnings(t); !sameWarnings(got, c.warns) || !maps.Equal(before, after) {
			t.Errorf("%s: the dry run warns %q, want %q", c.body, got, c.warns)
		}
		done := w.must(t, 201, request{method: "POST", path: c.path, body: c.body})
		if got := done.warnings(t); !sameWarnings(got, c.warns) {
			t.Errorf("%s: the write warns %q, want %q", c.body, got, c.warns)
		}
		if stored := w.must(t, 200, request{method: "GET", path: done.Header().Get("Location")}); strings.Contains(stored.Body.String(), "warnings") {
			t.Errorf("warnings are stored: %s", stored.Body)
		}
	}
	if got := w.must(t, 200, request{method: "GET", path: "/v1/warnings/rules"}).warnings(t); strings.Count(got, ",") != 3 {
		t.Errorf("the stored rules have %q", got)
	}
}

// sameWarnings compares ids with and without percent escapes.
func sameWarnings(got, want string) bool {
	return got == want || got == strings.ReplaceAll(want, "%2F", "/")
}

// Documents of one apply are judged beside each other, though none is stored,
// and take the place of stored ones.
func TestDocumentsAreJudgedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	find := func(items ...string) string {
		return w.must(t, 200, request{method: "POST", path: "/v1/warnings/rules", body: `{"items":[` + strings.Join(items, ",") + `]}`}).warnings(t)
	}
	if got := find(scopedRule("a", `{}`), scopedRule("b", `{}`)); got != "unreachable-rule b id" {
		t.Errorf("together they have %q", got)
	}
	w.must(t, 201, request{method: "POST", path: "/v1/rules", body: scopedRule("a", `{}`)})
	if got := find(scopedRule("b", `{}`)); got != "unreachable-rule b id" {
		t.Errorf("beside what is stored: %q", got)
	}
	elsewhere := strings.Replace(scopedRule("a", `{}`), `"1m"`, `"1h"`, 1)
	if got := find(elsewhere, scopedRule("b", `{}`)); got != "" {
		t.Errorf("beside what takes the place of what is stored: %q", got)
	}
	if n := w.count(t, `SELECT count(*) FROM rules`); n != 1 {
		t.Errorf("%d rules are stored", n)
	}
	w.must(t, 403, request{method: "POST", path: "/v1/warnings/rules", body: `{"items":[]}`, token: "Bearer " + readOnlyToken})
}

func TestKeysOfTenantsThatAreNoCustomersWarn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	create := func(tenant string) string {
		return w.must(t, 201, request{method: "POST", path: "/v1/keys", body: `{"tenantId":"` + tenant + `"}`}).warnings(t)
	}
	if got := create("nobody"); got != "" {
		t.Errorf("where nothing is sold: %q", got)
	}
	w.must(t, 201, request{method: "POST", path: "/v1/customers", body: goodCustomer})
	if got := create("acme"); got != "" {
		t.Errorf("of a customer: %q", got)
	}
	if got := create("nobody"); !strings.HasPrefix(got, "unknown-customer key_") || !strings.HasSuffix(got, " tenantId") {
		t.Errorf("of a tenant that is none: %q", got)
	}
}

// A document that was written for another kind is refused by that, not by each field.
func TestDocumentsOfAnotherKindAreToldSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for body, says := range map[string]string{
		`{"id":"pro","name":"Pro","currency":"EUR","rules":[{"metric":"m"}]}`:                "looks like a plan, which has currency and rules, and not like a rule",
		`{"name":"demo","prefix":"/demo/","upstreems":[],"endpoints":[]}`:                    "looks like a service",
		`{"id":"acme","name":"Acme","timezone":"UTC"}`:                                       "looks like a customer",
		`{"subject":{"kind":"tenant","value":"a"},"metric":"m","limit":5,"reason":"launch"}`: "looks like an override",
	} {
		p := w.must(t, 400, request{method: "POST", path: "/v1/rules?dryRun=true", body: body}).problem(t)
		if p.Type != "urn:sluice:problem:wrong-kind" || len(p.Errors) != 1 || !strings.Contains(p.Detail, says) {
			t.Errorf("%s: %+v", body, p)
		}
	}
	one := strings.Replace(scopedRule("a", `{}`), `"metric"`, `"metrik"`, 1)
	if p := w.must(t, 400, request{method: "POST", path: "/v1/rules", body: one}).problem(t); strings.Contains(p.Detail, "looks like") {
		t.Errorf("a misspelt field: %+v", p)
	}
}
