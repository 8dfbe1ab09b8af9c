//go:build integration

package controlplane_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// versionText is what of an answer a dry run may have otherwise: the next write
// draws another version.
var versionText = regexp.MustCompile(`"version":\d+`)

// rows is all there is in the database, a digest a table.
func (w world) rows(t *testing.T) map[string]string {
	t.Helper()
	found, err := w.db.Query(t.Context(), `SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	digests := make(map[string]string, len(tables))
	for _, table := range tables {
		var digest string
		if err := w.db.QueryRow(t.Context(), `SELECT coalesce(md5(string_agg(r::text, '|' ORDER BY r::text)), '') FROM `+table+` r`).Scan(&digest); err != nil {
			t.Fatal(err)
		}
		digests[table] = digest
	}
	return digests
}

// triedWrites are done one after another, each tried before it is done: some
// are refused by the body, some by a row, some by what else is there.
func triedWrites(etag string) []request {
	put := func(path, ifMatch, body string) request {
		return request{method: "PUT", path: path, body: body, header: map[string]string{"If-Match": ifMatch}}
	}
	remove := func(path, ifMatch string) request {
		return request{method: "DELETE", path: path, header: map[string]string{"If-Match": ifMatch}}
	}
	service := func(name, prefix string) string {
		return `{"name":"` + name + `","prefix":"` + prefix + `","upstreams":[{"url":"http://a"}]}`
	}
	return []request{
		{method: "POST", path: "/v1/rules", body: goodRule},
		{method: "POST", path: "/v1/rules", body: ruleNamed("b")},
		{method: "POST", path: "/v1/rules", body: ruleWith("gcra", "leaky")},
		{method: "PUT", path: "/v1/rules/c", body: ruleNamed("c"), header: map[string]string{"If-None-Match": "*"}},
		put("/v1/rules/a", etag, ruleWith("30", "40")),
		put("/v1/rules/a", etag, ruleWith("30", "50")), // stale by now
		put("/v1/rules/nobody", "*", ruleNamed("nobody")),
		put("/v1/rules/a", "*", ruleWith(`"metric"`, `"validUntil":"2001-01-01T00:00:00Z","metric"`)),
		{method: "PUT", path: "/v1/rules/a", body: goodRule},
		remove("/v1/rules/a", etag),
		remove("/v1/rules/a", "*"),
		remove("/v1/rules/a", "*"),
		{method: "POST", path: "/v1/overrides", body: `{"subject":{"kind":"tenant","value":"acme"},"metric":"m","limit":5}`},
		{method: "POST", path: "/v1/services", body: service("one", "/one/")},
		{method: "POST", path: "/v1/services", body: service("two", "/one/")}, // the prefix is taken
		put("/v1/services/one", "*", service("one", "/1/")),
		put("/v1/plans/pro", "*", strings.Replace(goodPlan, `"pro"`, `"pro","name":"Pro 2"`, 1)),
		remove("/v1/plans/pro", "*"),                                                         // somebody is subscribed
		put("/v1/customers/acme", "*", `{"id":"acme","name":"A","timezone":"Europe/Paris"}`), // moves the periods of rules
		remove("/v1/customers/acme", "*"),
		{method: "POST", path: "/v1/customers", body: `{"id":"globex","name":"G"}`},
		remove("/v1/customers/globex", "*"),
	}
}

// A dry run answers as the write that follows it, and leaves every table as it was.
func TestDryRunAnswersAsTheWriteAndChangesNothing(t *testing.T) {
	t.Parallel()
	w, _ := shop(t)
	w.subscribe(t, toPro)
	etag := w.must(t, 201, request{method: "POST", path: "/v1/rules", body: goodRule}).Header().Get("ETag")
	answered := map[int]int{}
	for _, real := range triedWrites(etag) {
		before := w.rows(t)
		dry := real
		dry.path += "?dryRun=true"
		tried := dry.do(t, w)
		for table, digest := range w.rows(t) {
			if before[table] != digest {
				t.Errorf("a dry run of %s %s changed %s", real.method, real.path, table)
			}
		}
		done := real.do(t, w)
		says, said := versionText.ReplaceAllString(done.Body.String(), ""), versionText.ReplaceAllString(tried.Body.String(), "")
		if tried.Code != done.Code || said != says || tried.Header().Get("Location") != done.Header().Get("Location") {
			t.Errorf("%s %s: a dry run answers %d %s, the write %d %s", real.method, real.path, tried.Code, tried.Body, done.Code, done.Body)
		}
		if mark := tried.Header().Get("Sluice-Dry-Run"); (mark == "true") != (tried.Code < 300) || tried.Header().Get("ETag") != "" || done.Header().Get("Sluice-Dry-Run") != "" {
			t.Errorf("%s %s: marked %q and %q, with ETag %s", real.method, real.path, mark, done.Header().Get("Sluice-Dry-Run"), tried.Header().Get("ETag"))
		}
		answered[done.Code]++
	}
	for _, status := range []int{200, 201, 204, 400, 404, 409, 412, 428} {
		if answered[status] == 0 {
			t.Errorf("nothing of it was answered %d: %v", status, answered)
		}
	}
}

// dryRun=false is the write itself.
func TestNoDryRunWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, request{method: "POST", path: "/v1/rules?dryRun=false", body: goodRule})
	w.must(t, 200, request{method: "GET", path: "/v1/rules/a"})
	w.must(t, 403, request{method: "POST", path: "/v1/rules?dryRun=true", body: goodRule, token: "Bearer " + readOnlyToken})
}
