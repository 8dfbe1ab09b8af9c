//go:build integration

package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/gateway/internal/explain"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
)

// tenantRule lets n pass an hour.
func tenantRule(id, tenant string, n int) string {
	return fmt.Sprintf(`{"id":%q,"subject":{"kind":"tenant","value":%q},"metric":%q,"limit":{"algorithm":"fixedWindow","limit":%d,"window":"1h"}}`, id, tenant, id, n)
}

// tableOf reads a table over HTTP, as operators do.
func tableOf(t *testing.T, s *Service, topic string) tableView {
	t.Helper()
	mux := http.NewServeMux()
	s.AdminRoutes(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/tables/"+topic, nil))
	var view tableView
	if err := json.Unmarshal(w.Body.Bytes(), &view); err != nil {
		t.Fatalf("%s: %d %s", topic, w.Code, w.Body)
	}
	return view
}

// One bad rule among 1,000: 999 are in force, and metric, log and table name
// the bad one; a bad version of a good rule leaves the good one in force.
func TestABadRuleDisturbsNoOther(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	for i := range 999 {
		id := fmt.Sprintf("r%d", i)
		text, err := json.Marshal(parseRule(t, tenantRule(id, id, 1)))
		if err != nil {
			t.Fatal(err)
		}
		d.record(rules.Topic, id, text)
	}
	bad := strings.Replace(tenantRule("bad", "r0", 1), "fixedWindow", "ofTheFuture", 1)
	d.record(rules.Topic, "bad", []byte(bad))
	d.mirror(rules.Topic)
	reg := prometheus.NewRegistry()
	d.registerer = reg
	g := d.runReady("gw", addr, prefix, nil)

	view := tableOf(t, g.Service, rules.Topic)
	if len(view.Entries) != 999 || view.Count != 1000 || !strings.Contains(view.Bad["bad"], "limit.algorithm") {
		t.Errorf("%d entries of %d, bad %v", len(view.Entries), view.Count, view.Bad)
	}
	if n, err := testutil.GatherAndCount(reg, "sluice_table_bad_records_total"); err != nil || n == 0 {
		t.Errorf("metric: %d, %v", n, err)
	}
	if log := d.log.String(); !strings.Contains(log, "key=bad") || !strings.Contains(log, "limit.algorithm") {
		t.Error("the log does not name the bad rule")
	}
	if first, second := g.get(t, "r998"), g.get(t, "r998"); first != 200 || second != 429 {
		t.Errorf("a good rule: %d, %d", first, second)
	}
	d.record(rules.Topic, "r5", []byte(strings.Replace(tenantRule("r5", "r5", 9), "fixedWindow", "ofTheFuture", 1)))
	d.mirror(rules.Topic)
	servertest.Eventually(t, patience, "the bad version to be read", func() bool { return tableOf(t, g.Service, rules.Topic).Bad["r5"] != "" })
	if first, second := g.get(t, "r5"), g.get(t, "r5"); first != 200 || second != 429 {
		t.Errorf("the last good version: %d, %d", first, second)
	}
}

// Of a rule of which no version could be read its onStoreLoss holds, it is told
// of, and a version that can be read puts an end to that.
func TestAnUnreadableRulesPolicyHolds(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	text := strings.Replace(tenantRule("new", "acme", 1), `"limit":{`, `"onStoreLoss":"closed","limit":{`, 1)
	d.record(rules.Topic, "new", []byte(strings.Replace(text, "fixedWindow", "ofTheFuture", 1)))
	d.mirror(rules.Topic)
	g := d.runReady("gw", addr, prefix, nil)
	if got, other := g.get(t, "acme"), g.get(t, "globex"); got != 503 || other != 200 {
		t.Errorf("its tenant is answered %d, another %d", got, other)
	}
	if view := tableOf(t, g.Service, rules.Topic); len(view.Unread) != 1 || view.Unread[0] != "new" || !strings.Contains(g.Degraded(), "1 rules cannot be read") {
		t.Errorf("unread %v, degraded %q", view.Unread, g.Degraded())
	}
	d.putRule(text)
	servertest.Eventually(t, patience, "the rule to be read", func() bool { return g.Degraded() == "" })
	if first, second := g.get(t, "acme"), g.get(t, "acme"); first != 200 || second != 429 {
		t.Errorf("its tenant is then answered %d, %d", first, second)
	}
}

func (r *running) get(t *testing.T, tenant string) int {
	t.Helper()
	return do(t, http.MethodGet, r.base+"/demo/x", "X-Tenant-Id", tenant).StatusCode
}

// v7 stays when v6 comes after it; a rule that was deleted and created again is
// in force, and a version from before the deletion revives nothing.
func TestLateVersionsChangeNothing(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	g := d.runReady("gw", addr, prefix, nil)
	seen := func(what string, key string) {
		t.Helper()
		d.putRule(tenantRule(key, key, 1)) // read after all that was published before
		servertest.Eventually(t, patience, what, func() bool { _, ok := g.tables.rules.Get(key); return ok })
	}
	late := func(n int, version int64) {
		text, err := json.Marshal(parseRule(t, tenantRule("r", "acme", n)))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		d.produce(&kgo.Record{
			Topic: d.stream.Topic(rules.Topic), Key: []byte("r"), Value: text,
			Headers: stream.Stamp{Generation: 1, Version: version, CommittedAt: now, RelayedAt: now}.Headers(),
		})
	}
	limitNow := func() int64 {
		e, _ := g.tables.rules.Get("r")
		if e.Value == nil {
			return -1
		}
		return e.Value.Limit
	}
	d.version = 6
	d.putRule(tenantRule("r", "acme", 7)) // version 7
	late(6, 6)
	seen("what follows v6", "after-six")
	if n := limitNow(); n != 7 {
		t.Errorf("the limit is %d, want v7's", n)
	}
	d.remove(rules.Topic, "r")
	late(7, 7)
	seen("what follows the deletion", "after-deletion")
	if n := limitNow(); n != -1 {
		t.Errorf("a late version revived the rule, with limit %d", n)
	}
	d.putRule(tenantRule("r", "acme", 2))
	seen("what follows the rule's return", "after-return")
	if a, b, c := g.get(t, "acme"), g.get(t, "acme"), g.get(t, "acme"); a != 200 || b != 200 || c != 429 {
		t.Errorf("created again with limit 2: %d, %d, %d", a, b, c)
	}
}

// An override comes with the topic, and is shown, asked of and taken back.
func TestOverridesAreEnforcedAndShown(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	d.putRule(tenantRule("r", "*", 1))
	g := d.runReady("gw", addr, prefix, func(cfg *Config) {
		cfg.Explain.Tokens = []identify.OperatorToken{{Name: "test", SHA256: withHash(explainToken, keys.Key{}).SHA256}}
	})
	if a, b := g.get(t, "acme"), g.get(t, "acme"); a != 200 || b != 429 {
		t.Fatalf("without an override: %d, %d", a, b)
	}
	three := int64(3)
	const id = "tenant:acme:r:1h"
	d.put(overrides.Topic, id, overrides.Override{ID: id, Subject: rules.Subject{Kind: "tenant", Value: "acme"}, Metric: "r", Window: "1h", Limit: &three})
	servertest.Eventually(t, patience, "the override", func() bool { _, ok := g.tables.overrides.Get(id); return ok })
	if view := tableOf(t, g.Service, overrides.Topic); len(view.Entries) != 1 || view.Entries[0].Key != id {
		t.Errorf("shows %+v", view)
	}
	if a, b, c := g.get(t, "acme"), g.get(t, "acme"), g.get(t, "acme"); a != 200 || b != 200 || c != 429 {
		t.Errorf("with an override to 3: %d, %d, %d", a, b, c)
	}
	out, err := g.explainer.Explain(t.Context(), explain.Question{TenantID: "acme", Path: "/demo/x"})
	if err != nil || out.Winners[0].Override != id || *out.WouldPass || *out.Winners[0].Remaining != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	d.remove(overrides.Topic, id)
	servertest.Eventually(t, patience, "the override to go", func() bool { _, ok := g.tables.overrides.Get(id); return !ok })
	if a := g.get(t, "acme"); a != 429 {
		t.Errorf("without it again: %d", a)
	}
}
