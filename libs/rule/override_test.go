package rule_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
)

func TestOverrideReplacesTheNumbers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		base, patch, override string
		limit, burst          int64
		unlimited             bool
	}{
		{gcraRule, `{}`, `"limit":60`, 60, 10, false},
		{gcraRule, `{"limit":{"burst":null}}`, `"limit":60`, 60, 60, false},
		{gcraRule, `{}`, `"limit":60,"burst":7`, 60, 7, false},
		{gcraRule, `{}`, `"limit":0`, 0, 0, false},
		{gcraRule, `{}`, `"unlimited":true`, 0, 0, true},
		{gcraRule, `{"limit":{"limit":0,"burst":null}}`, `"limit":5`, 5, 5, false},
		{gcraRule, `{"limit":{"limit":null,"burst":null},"unlimited":true}`, `"limit":5`, 5, 5, false},
		{gcraRule, `{}`, `"limit":60,"period":"month"`, 30, 10, false},
		{gcraRule, `{}`, `"limit":60,"window":"60s"`, 60, 10, false},
		{gcraRule, `{}`, `"limit":60,"window":"2m"`, 30, 10, false},
		{gcraRule, `{}`, `"limit":60,"validUntil":"1970-01-01T00:00:01Z"`, 30, 10, false},
		{gcraRule, `{"limit":{"window":"8760h"}}`, `"limit":1,"burst":1000`, 1, 71, false},
		{quotaRule, `{}`, `"limit":9`, 9, 0, false},
		{quotaRule, `{"limit":null,"unlimited":true}`, `"limit":9,"period":"month"`, 9, 0, false},
	} {
		ix := rule.New()
		if err := ix.Put(parse(t, tc.base, tc.patch)); err != nil {
			t.Fatal(err)
		}
		o, err := rule.CompileOverride(parseOverride(t, `{"subject":{"kind":"tenant","value":"acme"},"metric":"m",`+tc.override+`}`))
		if err != nil {
			t.Fatalf("%s: %v", tc.override, err)
		}
		ix.PutOverride(o)
		m := ix.Match(&rule.Request{TenantID: "acme", Now: at(1)}, nil)
		n := m[0].Counter(1)
		if n.Limit != tc.limit || n.Burst != tc.burst || n.Unlimited != tc.unlimited || n.Check() != nil {
			t.Errorf("%s on %s: %d burst %d unlimited %t, %v; want %d, %d, %t", tc.override, tc.patch, n.Limit, n.Burst, n.Unlimited, n.Check(), tc.limit, tc.burst, tc.unlimited)
		}
		if other := ix.Match(&rule.Request{TenantID: "globex", Now: at(1)}, nil); len(other) > 0 && other[0].Override != nil {
			t.Errorf("%s: holds for another tenant", tc.override)
		}
	}
}

// Whatever rule an override meets, the counter is one that a store can judge.
func TestOverriddenCountersAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRule(t)
		r.Mode, r.Metric, r.Cost = "", "m", nil
		o := drawOverride(t)
		n := rapid.Int64Range(0, limit.MaxInteger).Draw(t, "limit")
		o.Limit = &n
		if burst := rapid.Int64Range(0, limit.MaxInteger).Draw(t, "burst"); burst > 0 && o.Period == "" {
			o.Burst = &burst
		}
		ix := rule.New()
		compiled, err := rule.CompileOverride(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := ix.Put(r); err != nil {
			t.Fatal(err)
		}
		ix.PutOverride(compiled)
		for _, m := range ix.Match(drawRequest(t), nil) {
			if c := m.Counter(1); !m.MissingDeny && c.Check() != nil {
				t.Fatalf("%v", c.Check())
			}
		}
	})
}

func TestOverrideIDs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"subject":{"kind":"tenant","value":"acme"},"metric":"m","limit":1}`:                           "tenant:acme:m",
		`{"subject":{"kind":"tenant","value":"a:m"},"metric":"m","limit":1,"window":"60s"}`:             "tenant:a%3Am:m:1m",
		`{"subject":{"kind":"user","value":"a/b c"},"metric":"m","limit":1,"window":"90m"}`:             "user:a/b%20c:m:90m",
		`{"subject":{"kind":"endpoint","value":"s GET /{id}"},"metric":"m","limit":1,"period":"month"}`: "endpoint:s%20GET%20/%7Bid%7D:m:month",
	} {
		o := rule.NormalizeOverride(parseOverride(t, text))
		if o.ID != want || rule.NormalizeOverride(o).ID != want || len(rule.ValidateOverride(o)) > 0 {
			t.Errorf("%s: id %s, want %s", text, o.ID, want)
		}
	}
}

func TestValidateOverrideRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ fields, field, says string }{
		{`"subject":{"kind":"tenant","value":"*"}`, "subject.value", "must be exact"},
		{`"subject":{"kind":"user","value":"a/*"}`, "subject.value", "must be exact"},
		{`"subject":{"kind":"planet","value":"x"}`, "subject.kind", "one of"},
		{`"metric":"a b"`, "metric", "letters"},
		{`"window":"1ms"`, "window", "whole seconds"},
		{`"period":"fortnight"`, "period", "one of hour"},
		{`"window":"1m","period":"day"`, "period", "one or the other"},
		{`"limit":-1`, "limit", "0 to"},
		{`"limit":9007199254740993`, "limit", "0 to"},
		{`"unlimited":true`, "limit", "left out"},
		{`"limit":null`, "limit", "must be given"},
		{`"burst":0`, "burst", "1 to"},
		{`"burst":1,"period":"day"`, "burst", "belongs to rates"},
		{`"id":"x"`, "id", "tenant:acme:m"},
		{`"reason":"a\u0000"`, "reason", "printable"},
		{`"validUntil":"1960-01-01T00:00:00Z"`, "validUntil", "1970"},
	} {
		base := `{"subject":{"kind":"tenant","value":"acme"},"metric":"m","limit":1,`
		found := rule.ValidateOverride(parseOverride(t, base+tc.fields+`}`))
		if got := fieldsOf(found); !slices.Equal(got, []string{tc.field}) || !strings.Contains(found[0].Message, tc.says) {
			t.Errorf("%s: %v, want %s: …%s…", tc.fields, found, tc.field, tc.says)
		}
	}
}
