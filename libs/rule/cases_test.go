package rule_test

import (
	"testing"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// keyed returns the winners' ids and counter keys, in their order.
func keyed(t *testing.T, req *rule.Request, rs ...rules.Rule) (ids, keys []string) {
	t.Helper()
	ix := rule.New()
	if err := ix.Replace(rs); err != nil {
		t.Fatal(err)
	}
	for _, m := range ix.Match(req, nil) {
		ids, keys = append(ids, m.Rule.ID), append(keys, m.CounterKey())
	}
	return ids, keys
}

func TestTheMoreSpecificPatternWins(t *testing.T) {
	t.Parallel()
	scoped := func(id, pattern string) rules.Rule {
		r := parse(t, gcraRule, `{}`)
		r.ID, r.Scope = id, rules.Scope{Service: "pay", Endpoint: pattern}
		return r
	}
	all := []rules.Rule{scoped("any", "/v1/pay/{id}"), scoped("answer", "/v1/pay/42")}
	for path, want := range map[string]string{"/v1/pay/42": "answer", "/v1/pay/43": "any"} {
		if ids, _ := keyed(t, &rule.Request{TenantID: "acme", Service: "pay", Method: "GET", Path: path, Now: at(1)}, all...); len(ids) != 1 || ids[0] != want {
			t.Errorf("%s: %q wins, want %q", path, ids, want)
		}
	}
}

func TestTwoMetricsOfOneSubjectAreApart(t *testing.T) {
	t.Parallel()
	req := &rule.Request{TenantID: "acme", Now: at(1)}
	ids, keys := keyed(t, req, parse(t, gcraRule, `{"id":"a","metric":"a"}`), parse(t, gcraRule, `{"id":"b","metric":"b"}`))
	if len(ids) != 2 || keys[0] == keys[1] {
		t.Errorf("%q count in %q", ids, keys)
	}
}

// The algorithm is part of the counter: its states mean other things.
func TestAnotherAlgorithmIsAnotherCounter(t *testing.T) {
	t.Parallel()
	req := &rule.Request{TenantID: "acme", Now: at(1)}
	seen := map[string]string{}
	for _, algorithm := range []string{"gcra", "fixedWindow", "slidingWindow", "tokenBucket"} {
		_, keys := keyed(t, req, parse(t, gcraRule, `{"limit":{"burst":null,"algorithm":"`+algorithm+`"}}`))
		if other, taken := seen[keys[0]]; taken {
			t.Errorf("%s and %s count in %s", algorithm, other, keys[0])
		}
		seen[keys[0]] = algorithm
	}
}

// Both quotas of a metric and its rate hold: their horizons differ.
func TestAllHorizonsOfAMetricHold(t *testing.T) {
	t.Parallel()
	req := &rule.Request{TenantID: "acme", Now: at(1)}
	ids, _ := keyed(t, req,
		parse(t, quotaRule, `{"id":"year","limit":{"period":"year"}}`), parse(t, quotaRule, `{"id":"day","limit":{"period":"day"}}`),
		parse(t, fixedRule, `{"id":"second","subject":{"kind":"tenant","value":"*"},"limit":{"window":"1s"}}`))
	if len(ids) != 3 || ids[0] != "second" || ids[1] != "day" || ids[2] != "year" {
		t.Errorf("%q hold", ids)
	}
}

// A zone is no horizon: a tenant's own calendar takes the place of everyone's,
// and counts in a counter of its own.
func TestOwnCalendarReplacesEveryones(t *testing.T) {
	t.Parallel()
	req := &rule.Request{TenantID: "acme", Now: at(1)}
	ix := rule.New()
	if err := ix.Replace([]rules.Rule{
		parse(t, quotaRule, `{"id":"all","subject":{"value":"*"}}`), parse(t, quotaRule, `{"id":"own","limit":{"timezone":"Europe/Istanbul"}}`),
	}); err != nil {
		t.Fatal(err)
	}
	m := ix.Match(req, nil)
	if len(m) != 1 || m[0].Rule.ID != "own" {
		t.Fatalf("%d winners", len(m))
	}
	if n := m[0].Counter(1); n.Key != "{t:acme}:t::m:quota" || n.Calendar.At(req.Now).Name() != "month@Europe/Istanbul:197001" {
		t.Errorf("counts in %s, %s", n.Key, n.Calendar.At(req.Now).Name())
	}
}

func TestShadowCompetesApart(t *testing.T) {
	t.Parallel()
	ix := rule.New()
	if err := ix.Replace([]rules.Rule{
		parse(t, gcraRule, `{"id":"on"}`), parse(t, gcraRule, `{"id":"trial","mode":"shadow","subject":{"value":"acme"}}`),
		parse(t, gcraRule, `{"id":"beaten","mode":"shadow"}`),
	}); err != nil {
		t.Fatal(err)
	}
	m := ix.Match(&rule.Request{TenantID: "acme", Now: at(1)}, nil)
	if len(m) != 2 || m[0].Rule.ID != "on" || m[1].Rule.ID != "trial" {
		t.Fatalf("%+v", m)
	}
	enforced, shadow := m[0].Counter(1), m[1].Counter(1)
	if enforced.Shadow || !shadow.Shadow || enforced.Key != "{t:acme}:t::m:gcra:60" || shadow.Key != "{t:acme}:t::m:gcra-shadow:60" {
		t.Errorf("%+v and %+v", enforced, shadow)
	}
}
