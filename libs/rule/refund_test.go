package rule

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

func TestFailuresThatAreGivenBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		refundOn string
		status   int
		how      Failure
		want     bool
	}{
		{`null`, 503, Answered, false},
		{`["5xx"]`, 200, Answered, false},
		{`["5xx"]`, 499, Answered, false},
		{`["5xx"]`, 500, Answered, true},
		{`["5xx"]`, 599, Answered, true},
		{`["5xx"]`, 600, Answered, false},
		{`["5xx"]`, 502, Unanswered, true},
		{`["5xx"]`, 504, TimedOut, true},
		{`["timeout"]`, 504, TimedOut, true},
		{`["timeout"]`, 504, Answered, false},
		{`["timeout"]`, 502, Unanswered, false},
		{`["error"]`, 502, Unanswered, true},
		{`["error"]`, 502, Answered, false},
		{`["error"]`, 504, TimedOut, false},
		{`["400","503"]`, 400, Answered, true},
		{`["400","503"]`, 503, Answered, true},
		{`["400","503"]`, 401, Answered, false},
		{`["503"]`, 101, Answered, false},
		{`["499","400","5xx"]`, 499, Answered, true},
		{`["499","400","5xx"]`, 499, ClientsFault, false},
		{`["499","400","5xx"]`, 400, ClientsFault, false},
		{`["503"]`, 499, Abandoned, true},
		{`null`, 499, Abandoned, false},
	} {
		var names []string
		if err := json.Unmarshal([]byte(c.refundOn), &names); err != nil {
			t.Fatal(err)
		}
		if got := failuresOf(names).Has(c.status, c.how); got != c.want {
			t.Errorf("%s: status %d, %d: %t", c.refundOn, c.status, c.how, got)
		}
	}
}

// Rules that differ in nothing but refundOn do not share what follows from it.
func TestRefundOnReachesTheCompiledRule(t *testing.T) {
	t.Parallel()
	compile := func(refundOn ...string) *Compiled {
		var r rules.Rule
		if err := json.Unmarshal([]byte(`{"id":"r","subject":{"kind":"tenant","value":"*"},"metric":"m","limit":{"algorithm":"gcra","limit":3,"window":"1m"}}`), &r); err != nil {
			t.Fatal(err)
		}
		r.RefundOn = refundOn
		c, err := Compile(r)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	none, all, one := compile(), compile("timeout", "5xx"), compile("503")
	if none.RefundOn != nil || !all.RefundOn.Has(504, TimedOut) || one.RefundOn.Has(500, Answered) || !one.RefundOn.Has(503, Answered) {
		t.Errorf("%+v %+v %+v", none.RefundOn, all.RefundOn, one.RefundOn)
	}
	n := Normalize(rules.Rule{RefundOn: []string{"timeout", "5xx", "404"}})
	if !slices.Equal(n.RefundOn, []string{"404", "5xx", "timeout"}) || Normalize(rules.Rule{RefundOn: []string{}}).RefundOn != nil {
		t.Errorf("normalized to %q", n.RefundOn)
	}
}
