package gateway

import (
	"reflect"
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// The minute lets pass, the hour does not: the answer is about the hour.
func TestTheAnswerSpeaksOfWhatDenies(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}})
	s.putRule(ruleJSON("minute", "tenant", "calls", `{"algorithm":"fixedWindow","limit":10,"window":"1m"}`, ""))
	s.putRule(ruleJSON("hour", "tenant", "calls", twoOnce, ""))
	for range 2 {
		if a := s.get("/demo/x", acme...); a.StatusCode != 200 {
			t.Fatal(a.StatusCode, a.body)
		}
	}
	s.events()
	a := s.get("/demo/x", acme...)
	p, e := a.problem(t), s.event()
	if a.StatusCode != 429 || !reflect.DeepEqual(p.Violated, []string{"hour"}) || a.Header.Get("Retry-After") != "3600" || e.RuleID != "hour" {
		t.Errorf("%d %v %s, event %+v", a.StatusCode, a.Header, a.body, e)
	}
	want := []item{{"hour", map[string]int64{"r": 0, "t": 3600}}, {"minute", map[string]int64{"r": 8, "t": 60}}}
	if got := parseField(t, a.Header.Values("RateLimit")); !reflect.DeepEqual(got, want) {
		t.Errorf("RateLimit is %v, want %v", got, want)
	}
	want = []item{{"hour", map[string]int64{"q": 2, "w": 3600}}, {"minute", map[string]int64{"q": 10, "w": 60}}}
	if got := parseField(t, a.Header.Values("RateLimit-Policy")); !reflect.DeepEqual(got, want) {
		t.Errorf("RateLimit-Policy is %v, want %v", got, want)
	}
}

// Waiting does not help a request that costs more than a full counter holds,
// and it takes nothing from those that cost less.
func TestCostAboveBurstIsNeverAllowed(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}, answers: DefaultConfig().Answers, catalog: []catalog.Service{
		{Name: "demo", Prefix: "/demo/", LegacyHeaders: true, Endpoints: []catalog.Endpoint{{Pattern: "/demo/export", Cost: new(int64(11))}}},
	}})
	s.putRule(ruleJSON("calls", "tenant", "calls", `{"algorithm":"gcra","limit":30,"window":"1m","burst":10}`, ""))
	s.get("/demo/x", acme...)
	for range 3 {
		a := s.get("/demo/export", acme...)
		if a.problem(t); a.StatusCode != 429 || a.Header.Values("Retry-After") != nil || a.Header.Values("X-RateLimit-Reset") != nil {
			t.Errorf("%d %v", a.StatusCode, a.Header)
		}
		if got, want := parseField(t, a.Header.Values("RateLimit")), []item{{"calls", map[string]int64{"r": 9}}}; !reflect.DeepEqual(got, want) {
			t.Errorf("RateLimit is %v, want %v", got, want)
		}
	}
	if a := s.get("/demo/x", acme...); a.StatusCode != 200 || a.Header.Get("X-RateLimit-Remaining") != "8" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
}
