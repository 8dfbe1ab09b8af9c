package rule_test

import (
	"fmt"
	"slices"
	"strings"
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

// The rules of docs/howto/sell-an-api.md: what grants nothing to whoever has no
// plan is beaten by a plan's quota, though it is of another calendar and would
// count apart.
func TestTenantQuotasLeaveOutWhoLosesToTheTenantsOwnRule(t *testing.T) {
	t.Parallel()
	const (
		anyones = `{"id":"shop-needs-a-plan","subject":{"value":"*"},"metric":"calls","scope":{"service":"shop"},"limit":{"limit":0}}`
		plans   = `{"id":"sub:calls:month","metric":"calls","scope":{"service":"shop"},"limit":{"limit":5,"timezone":"Europe/Istanbul"}}`
	)
	for name, c := range map[string]struct {
		patches []string
		want    string
	}{
		"the how-to's":              {[]string{anyones, plans}, "[sub:calls:month]"},
		"of who has no plan":        {[]string{anyones}, "[shop-needs-a-plan]"},
		"a plan without a limit":    {[]string{anyones, strings.Replace(plans, `"limit":{"limit":5,"timezone":"Europe/Istanbul"}`, `"limit":null,"unlimited":true`, 1)}, "[sub:calls:month]"},
		"of anyone without a limit": {[]string{strings.Replace(anyones, `"limit":{"limit":0}`, `"limit":null,"unlimited":true`, 1), plans}, "[sub:calls:month]"},
		"of another service":        {[]string{strings.Replace(anyones, `"shop"`, `"other"`, 1), plans}, "[shop-needs-a-plan sub:calls:month]"},
		"of every service":          {[]string{strings.Replace(anyones, `"service":"shop"`, ``, 1), plans}, "[shop-needs-a-plan sub:calls:month]"},
		"of another period":         {[]string{strings.Replace(anyones, `"limit":0`, `"limit":0,"period":"day"`, 1), plans}, "[shop-needs-a-plan sub:calls:month]"},
	} {
		var all []*rule.Compiled
		ix := rule.New()
		for _, patch := range c.patches {
			compiled, err := rule.Compile(parse(t, quotaRule, patch))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = append(all, compiled)
			ix.PutCompiled(compiled)
		}
		var ids []string
		for _, m := range rule.TenantQuotas("acme", all, nil, at(100)) {
			ids = append(ids, m.Rule.ID)
		}
		slices.Sort(ids)
		if got := fmt.Sprint(ids); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		charged := map[string]bool{}
		for _, service := range []string{"shop", "other"} {
			for _, m := range ix.Match(&rule.Request{TenantID: "acme", Service: service, Method: "GET", Path: "/", Now: at(100)}, nil) {
				charged[m.Rule.ID] = true
			}
		}
		if len(charged) != len(ids) {
			t.Errorf("%s: requests are counted by %v, and named are %v", name, charged, ids)
		}
	}
}
