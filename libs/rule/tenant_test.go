package rule_test

import (
	"fmt"
	"testing"

	"github.com/sluice-platform/sluice/libs/rule"
)

// Whatever rules there are: each counter of the tenant is named once, Match
// charges it by the same key, and nobody else's is among them.
func TestTenantQuotasNameTheCountersThatMatchCharges(t *testing.T) {
	t.Parallel()
	var all []*rule.Compiled
	ix := rule.New()
	for i, patch := range []string{
		`{}`, `{"subject":{"value":"*"}}`, `{"subject":{"value":"globex"}}`, `{"mode":"shadow"}`, `{"mode":"off","metric":"off"}`,
		`{"metric":"days","limit":{"period":"day","timezone":"Europe/Paris","anchorDay":null}}`,
		`{"metric":"past","validUntil":"1970-01-01T00:00:01Z"}`, `{"metric":"free","limit":null,"unlimited":true}`,
		`{"scope":{"service":"s"},"limit":{"limit":3}}`, `{"subject":{"kind":"user","value":"acme/u"},"metric":"user"}`,
	} {
		r := parse(t, quotaRule, patch)
		r.ID = fmt.Sprint("r", i)
		c, err := rule.Compile(r)
		if err != nil {
			t.Fatalf("%s: %v", patch, err)
		}
		all = append(all, c)
		ix.PutCompiled(c)
	}
	now := at(100)
	charged := map[string]bool{}
	for _, m := range ix.Match(&rule.Request{TenantID: "acme", Service: "s", Method: "GET", Path: "/", Now: now}, nil) {
		if !m.Rule.Shadow {
			charged[m.CounterKey()] = true
		}
	}
	found := rule.TenantQuotas("acme", all, nil, now)
	for _, m := range found {
		if !charged[m.CounterKey()] {
			t.Errorf("names %s, which no request charges", m.CounterKey())
		}
		delete(charged, m.CounterKey())
	}
	if len(charged) != 0 || len(found) != 3 {
		t.Errorf("of %d counters it does not name %v", len(found), charged)
	}
	for _, m := range found {
		if m.Rule.Metric == "m" && m.Rule.ID != "r0" {
			t.Errorf("the limit is that of %s, not of the rule with the widest scope", m.Rule.ID)
		}
	}
}
