package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
)

const inShadow = `,"mode":"shadow"`

// What a shadow rule would deny is an event and a metric; the client's answer
// is the one it would get without the rule.
func TestShadowRulesAreReportedAndDenyNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules    []string
		decision string // of the third request
		status   int
		rule     string
		reason   string
	}{
		"would deny":              {[]string{ruleJSON("two", "tenant", "m", twoOnce, inShadow)}, "SHADOW", 200, "two", charge.QuotaExceeded},
		"would pass":              {[]string{ruleJSON("ten", "tenant", "m", tenOnce, inShadow)}, "ALLOW", 200, "", ""},
		"grants nothing":          {[]string{ruleJSON("none", "tenant", "m", noQuota, inShadow)}, "SHADOW", 200, "none", charge.NotEntitled},
		"identity missing":        {[]string{ruleJSON("app", "application", "m", tenOnce, inShadow+`,"onMissing":"deny"`)}, "SHADOW", 200, "app", charge.IdentityMissing},
		"beside one that passes":  {[]string{ruleJSON("ten", "tenant", "m", tenOnce, ""), ruleJSON("two", "tenant", "m", twoOnce, inShadow)}, "SHADOW", 200, "two", charge.QuotaExceeded},
		"beside one that denies":  {[]string{ruleJSON("two", "tenant", "m", twoOnce, ""), ruleJSON("one", "user", "m", `{"algorithm":"fixedWindow","limit":1,"window":"1h"}`, inShadow)}, "DENY", 429, "two", charge.QuotaExceeded},
		"the longest wait speaks": {[]string{ruleJSON("m", "tenant", "m", `{"algorithm":"fixedWindow","limit":2,"window":"1m"}`, inShadow), ruleJSON("h", "tenant", "m", twoOnce, inShadow)}, "SHADOW", 200, "h", charge.QuotaExceeded},
	} {
		s := newStand(t, standOptions{trusted: []string{loopback}})
		for _, r := range c.rules {
			s.putRule(r)
		}
		s.get("/demo/x", acme...)
		s.get("/demo/x", acme...)
		s.events()
		before := testutil.ToFloat64(s.gate.metrics.decisions[charge.Shadow])
		a := s.get("/demo/x", acme...)
		e := s.event()
		if a.StatusCode != c.status || e.StatusCode != c.status || e.Decision != c.decision || e.RuleID != c.rule || e.Reason != c.reason {
			t.Errorf("%s: %d, event %+v", name, a.StatusCode, e)
		}
		if shadows := testutil.ToFloat64(s.gate.metrics.decisions[charge.Shadow]) - before; (shadows == 1) != (c.decision == "SHADOW") {
			t.Errorf("%s: %v decisions are counted as shadow", name, shadows)
		}
		for _, r := range c.rules {
			id := strings.Split(r, `"`)[3]
			if said := a.Header.Get("RateLimit") + a.Header.Get("RateLimit-Policy") + a.body; strings.Contains(r, "shadow") && strings.Contains(said, `"`+id+`"`) {
				t.Errorf("%s: the client hears of %s: %s", name, id, said)
			}
		}
		if len(c.rules) == 1 && (a.Header.Get("RateLimit") != "" || a.Header.Get("Retry-After") != "") {
			t.Errorf("%s: headers %v", name, a.Header)
		}
	}
}

// A shadow quota charges what it would let pass, in a counter of its own, also
// when an enforced rule denies the request.
func TestShadowChargesAreTold(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}})
	s.putRule(ruleJSON("real", "tenant", "m", `{"algorithm":"quota","kind":"renewing","limit":1,"period":"month"}`, ""))
	s.putRule(ruleJSON("trial", "tenant", "m", `{"algorithm":"quota","kind":"renewing","limit":2,"period":"month"}`, inShadow))
	for i, want := range []struct {
		status  int
		charges map[int64]bool // limits of the counters charged
	}{{200, map[int64]bool{1: true, 2: true}}, {429, map[int64]bool{2: true}}, {429, nil}} {
		a := s.get("/demo/x", acme...)
		e := s.event()
		if a.StatusCode != want.status || len(e.Charges) != len(want.charges) {
			t.Fatalf("request %d: %d, event %+v", i, a.StatusCode, e)
		}
		keys := map[string]bool{}
		for _, c := range e.Charges {
			keys[c.Counter] = true
			if c.Limit == nil || !want.charges[*c.Limit] || c.Amount != 1 || c.Consumed > int64(i)+1 {
				t.Errorf("request %d: charge %+v", i, c)
			}
		}
		if len(keys) != len(e.Charges) {
			t.Errorf("request %d: the trial counts in the real counter: %+v", i, e.Charges)
		}
	}
}

// While the store is away shadow rules neither close nor mark anything.
func TestShadowRulesAndAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules    []string
		status   int
		degraded bool
	}{
		"alone, closed":          {[]string{ruleJSON("a", "tenant", "m", tenQuota, inShadow+`,"onStoreLoss":"closed"`)}, http.StatusOK, false},
		"alone, nothing granted": {[]string{ruleJSON("a", "tenant", "m", noQuota, inShadow)}, http.StatusOK, false},
		"beside an open one":     {[]string{ruleJSON("a", "tenant", "m", tenQuota, inShadow), ruleJSON("b", "tenant", "m", tenOnce, `,"onStoreLoss":"open"`)}, http.StatusOK, true},
		"beside a closed one":    {[]string{ruleJSON("a", "tenant", "m", tenOnce, inShadow), ruleJSON("b", "tenant", "m", tenOnce, `,"onStoreLoss":"closed"`)}, http.StatusServiceUnavailable, false},
	} {
		s := newStand(t, standOptions{trusted: []string{loopback}})
		s.use(nil).down = limit.ErrUnavailable
		for _, r := range c.rules {
			s.putRule(r)
		}
		a := s.get("/demo/x", acme...)
		if a.StatusCode != c.status || (a.Header.Get("Sluice-Degraded") != "") != c.degraded {
			t.Errorf("%s: %d %v", name, a.StatusCode, a.Header)
		}
		if strings.Contains(a.body, `"a"`) {
			t.Errorf("%s: the client hears of the shadow rule: %s", name, a.body)
		}
	}
}
