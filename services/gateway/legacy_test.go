package gateway

import (
	"net/http"
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

func TestLegacyHeadersWhereAsked(t *testing.T) {
	t.Parallel()
	upstreams := func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{"X-RateLimit-Limit": "77", "X-RateLimit-Remaining": "77", "X-RateLimit-Reset": "77"} {
			w.Header().Set(name, value)
		}
	}
	of := func(a answer) [3]string {
		return [3]string{a.Header.Get("X-RateLimit-Limit"), a.Header.Get("X-RateLimit-Remaining"), a.Header.Get("X-RateLimit-Reset")}
	}
	own := [3]string{"77", "77", "77"}
	for name, c := range map[string]struct {
		everywhere, here bool
		rules            []string
		want             [3]string // of the first answer
		denied           [3]string // of the third
	}{
		"not asked for":   {false, false, []string{ruleJSON("two", "tenant", "m", twoOnce, "")}, own, [3]string{}},
		"by the service":  {false, true, []string{ruleJSON("two", "tenant", "m", twoOnce, "")}, [3]string{"2", "1", "3600"}, [3]string{"2", "0", "3600"}},
		"everywhere":      {true, false, []string{ruleJSON("two", "tenant", "m", twoOnce, "")}, [3]string{"2", "1", "3600"}, [3]string{"2", "0", "3600"}},
		"of the tightest": {true, true, []string{ruleJSON("ten", "user", "m", tenOnce, ""), ruleJSON("two", "tenant", "m", twoOnce, "")}, [3]string{"2", "1", "3600"}, [3]string{"2", "0", "3600"}},
		"nothing limited": {true, true, []string{`{"id":"a","subject":{"kind":"tenant","value":"*"},"metric":"m","unlimited":true}`}, own, own},
		"no rule":         {true, true, nil, own, own},
		"never":           {true, true, []string{ruleJSON("none", "tenant", "m", noRate, "")}, [3]string{"0", "0", ""}, [3]string{"0", "0", ""}},
	} {
		s := newStand(t, standOptions{
			trusted: []string{loopback}, handler: upstreams, answers: AnswersConfig{LegacyHeaders: c.everywhere},
			catalog: []catalog.Service{{Name: "demo", Prefix: "/demo/", LegacyHeaders: c.here}},
		})
		for _, r := range c.rules {
			s.putRule(r)
		}
		if got := of(s.get("/demo/x", acme...)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		s.get("/demo/x", acme...)
		if got := of(s.get("/demo/x", acme...)); got != c.denied {
			t.Errorf("%s: the third answer has %q, want %q", name, got, c.denied)
		}
	}
}
