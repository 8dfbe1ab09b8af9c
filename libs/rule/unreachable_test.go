package rule_test

import (
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

func TestFindUnreachable(t *testing.T) {
	t.Parallel()
	june := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	cases := []struct {
		name        string
		a, b        func(*rules.Rule)
		unreachable string // and by whom
	}{
		{"alike", nil, nil, "b by a: smaller id"},
		{"other numbers and algorithm", nil, func(r *rules.Rule) { r.Limit.Algorithm, r.Limit.Limit = "slidingWindow", new(int64(9)) }, "b by a: smaller id"},
		{"window by another spelling", nil, func(r *rules.Rule) { r.Limit.Window = "60s" }, "b by a: smaller id"},
		{"higher priority", nil, func(r *rules.Rule) { r.Priority = 1 }, "a by b: higher priority"},
		{"other window", nil, func(r *rules.Rule) { r.Limit.Window = "1h" }, ""},
		{"other metric", nil, func(r *rules.Rule) { r.Metric = "n" }, ""},
		{"other subject", func(r *rules.Rule) { r.Subject.Value = "acme" }, func(r *rules.Rule) { r.Subject.Value = "globex" }, ""},
		{"other kind", nil, func(r *rules.Rule) { r.Subject.Kind = "service" }, ""},
		{"only one", nil, func(r *rules.Rule) { r.Subject.Value = "acme" }, ""},
		{"other scope", nil, func(r *rules.Rule) { r.Scope.Service = "demo" }, ""},
		{"shadow", nil, func(r *rules.Rule) { r.Mode = rules.ModeShadow }, ""},
		{"winner off", func(r *rules.Rule) { r.Mode = rules.ModeOff }, nil, ""},
		{"loser off", nil, func(r *rules.Rule) { r.Mode = rules.ModeOff }, ""},
		{"winner begins later", func(r *rules.Rule) { r.ValidFrom = &june }, nil, ""},
		{"winner ends sooner", func(r *rules.Rule) { r.ValidUntil = &june }, nil, ""},
		{"loser ends sooner", nil, func(r *rules.Rule) { r.ValidUntil = &june }, "b by a: smaller id"},
		{"loser holds for who is missing", nil, func(r *rules.Rule) { r.OnMissing = rules.MissingDeny }, ""},
		{"winner holds for who is missing", func(r *rules.Rule) { r.OnMissing = rules.MissingDeny }, nil, "b by a: smaller id"},
	}
	for _, c := range cases {
		var both []*rule.Compiled
		for _, one := range []struct {
			id     string
			change func(*rules.Rule)
		}{{"b", c.b}, {"a", c.a}} {
			r := rules.Rule{ID: one.id, Subject: rules.Subject{Kind: "tenant", Value: "*"}, Metric: "m",
				Limit: &rules.Limit{Algorithm: rules.AlgorithmGCRA, Limit: new(int64(5)), Window: "1m"}}
			if one.change != nil {
				one.change(&r)
			}
			compiled, err := rule.Compile(r)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			both = append(both, compiled)
		}
		got := ""
		for _, o := range rule.FindUnreachable(both) {
			got += o.Rule.ID + " by " + o.By.ID + ": " + o.Because
		}
		if got != c.unreachable {
			t.Errorf("%s: %q, want %q", c.name, got, c.unreachable)
		}
	}
}
