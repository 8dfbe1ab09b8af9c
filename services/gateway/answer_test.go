package gateway

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
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

func compiled(t testing.TB, id, limitJSON string) *rule.Compiled {
	t.Helper()
	r := parseRule(t, `{"subject":{"kind":"tenant","value":"*"},"metric":"m",`+limitJSON+`}`)
	r.ID = id
	c, err := rule.Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const hourly = `"limit":{"algorithm":"fixedWindow","limit":10,"window":"1h"}`

func TestFieldsAreStrictForAnyIDAndNumber(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"plain": "plain", `quo"te`: `quo"te`, `back\slash`: `back\slash`, "Zoë": "Zo%C3%AB", "100%": "100%25", "{a}:b c": "{a}:b c", "日本": "%E6%97%A5%E6%9C%AC",
	} {
		x := &exchange{charges: &charge.Charges{JudgedAt: noon, Judged: []charge.Judgement{{Rule: compiled(t, id, hourly), State: limit.State{
			Allowed: true, Limit: math.MaxInt64, Remaining: math.MaxInt64, Reset: math.MaxInt64 - time.Second,
		}}}}}
		policies, limits := x.fields()
		for _, text := range []string{policies, limits} {
			for _, it := range parseField(t, []string{text}) {
				if it.name != want || policyName(id) != want {
					t.Errorf("id %q is named %q, want %q", id, it.name, want)
				}
				for p, n := range it.params {
					if n > maxSFInteger {
						t.Errorf("%s=%d is no sf-integer", p, n)
					}
				}
			}
		}
	}
}

func TestFieldsSayWhatTheCountersSay(t *testing.T) {
	t.Parallel()
	month := `"limit":{"algorithm":"quota","kind":"renewing","limit":1000,"period":"month"}`
	x := &exchange{charges: &charge.Charges{JudgedAt: noon, Judged: []charge.Judgement{
		{Rule: compiled(t, "dry", hourly), State: limit.State{Limit: 10, Reset: 1500 * time.Millisecond, RetryAfter: 2500 * time.Millisecond}},
		{Rule: compiled(t, "free", `"unlimited":true`), State: limit.State{Allowed: true, Unlimited: true}},
		{Rule: compiled(t, "month", month), State: limit.State{Allowed: true, Limit: 1000, Remaining: 7, Reset: time.Hour}},
		{Rule: compiled(t, "never", hourly), State: limit.State{Limit: 10, Remaining: 3, Never: true}},
	}}}
	policies, limits := x.fields()
	if want := `"dry";q=10;w=3600, "month";q=1000;w=2678400, "never";q=10;w=3600`; policies != want {
		t.Errorf("RateLimit-Policy: %s\nwant %s", policies, want)
	}
	if want := `"dry";r=0;t=3, "month";r=7;t=3600, "never";r=3`; limits != want {
		t.Errorf("RateLimit: %s\nwant %s", limits, want)
	}
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

func TestWaitIsTheLongestAndNeverTooShort(t *testing.T) {
	t.Parallel()
	denied := func(after, reset time.Duration) charge.Judgement {
		return charge.Judgement{State: limit.State{RetryAfter: after, Reset: reset}}
	}
	allowed := charge.Judgement{State: limit.State{Allowed: true, Reset: time.Hour}}
	never := charge.Judgement{State: limit.State{Never: true}}
	for _, c := range []struct {
		judged []charge.Judgement
		want   int64
		ok     bool
	}{
		{[]charge.Judgement{denied(time.Microsecond, 0)}, 1, true},
		{[]charge.Judgement{denied(time.Second, 0)}, 1, true},
		{[]charge.Judgement{denied(time.Second+time.Microsecond, 0)}, 2, true},
		{[]charge.Judgement{denied(time.Second, 90*time.Second)}, 90, true},
		{[]charge.Judgement{denied(2*time.Second, 0), denied(5*time.Second, 0), allowed}, 5, true},
		{[]charge.Judgement{denied(2*time.Second, 0), never}, 0, false},
	} {
		if got, ok := wait(c.judged); got != c.want || ok != c.ok {
			t.Errorf("%+v: wait %d, %v, want %d, %v", c.judged, got, ok, c.want, c.ok)
		}
	}
}
