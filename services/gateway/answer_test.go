package gateway

import (
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// item is one member of a RateLimit field.
type item struct {
	name   string
	params map[string]int64
}

// parseField reads a field as RFC 9651 says and checks that it is written the
// one way the RFC's serializer would.
func parseField(t testing.TB, values []string) []item {
	t.Helper()
	if len(values) != 1 {
		t.Fatalf("the field is there %d times: %q", len(values), values)
	}
	list, err := httpsfv.UnmarshalList(values)
	if err != nil {
		t.Fatalf("%q is no list: %v", values[0], err)
	}
	if again, err := httpsfv.Marshal(list); err != nil || again != values[0] {
		t.Errorf("%q is not canonical: %q, %v", values[0], again, err)
	}
	var items []item
	for _, member := range list {
		sf, ok := member.(httpsfv.Item)
		if !ok {
			t.Fatalf("%q: a member is no item", values[0])
		}
		name, ok := sf.Value.(string)
		if !ok {
			t.Fatalf("%q: a member is %T, no string", values[0], sf.Value)
		}
		it := item{name: name, params: map[string]int64{}}
		for _, p := range sf.Params.Names() {
			v, _ := sf.Params.Get(p)
			n, ok := v.(int64)
			if !ok || n < 0 {
				t.Errorf("%q: %s is %v", values[0], p, v)
			}
			it.params[p] = n
		}
		items = append(items, it)
	}
	return items
}

// r is never above q, and X-RateLimit-Remaining never above -Limit, where a burst
// above the limit lets more pass at once.
func TestAvailableIsWithinTheQuota(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}, answers: AnswersConfig{LegacyHeaders: true}})
	s.putRule(ruleJSON("bursty", "tenant", "m", `{"algorithm":"gcra","limit":30,"window":"1m","burst":33}`, ""))
	for i, want := range []string{"30", "30", "30", "29"} {
		a := s.get("/demo/x", acme...)
		if got := a.Header.Get("RateLimit"); !strings.HasPrefix(got, `"bursty";r=`+want+";") || a.Header.Get("RateLimit-Policy") != `"bursty";q=30;w=60` {
			t.Errorf("request %d: %s of %s", i, got, a.Header.Get("RateLimit-Policy"))
		}
		if left, limit := a.Header.Get("X-RateLimit-Remaining"), a.Header.Get("X-RateLimit-Limit"); left != want || limit != "30" {
			t.Errorf("request %d: %s of %s", i, left, limit)
		}
	}
}
