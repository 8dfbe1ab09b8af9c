package respond

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/event"
)

var noon = time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC)

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
	var r rules.Rule
	if err := json.Unmarshal([]byte(`{"subject":{"kind":"tenant","value":"*"},"metric":"m",`+limitJSON+`}`), &r); err != nil {
		t.Fatal(err)
	}
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
		q := &charge.Charges{JudgedAt: noon, Judged: []charge.Judgement{{Rule: compiled(t, id, hourly), State: limit.State{
			Allowed: true, Limit: math.MaxInt64, Remaining: math.MaxInt64, Reset: math.MaxInt64 - time.Second,
		}}}}
		policies, limits := fields(q)
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
	q := &charge.Charges{JudgedAt: noon, Judged: []charge.Judgement{
		{Rule: compiled(t, "dry", hourly), State: limit.State{Limit: 10, Reset: 1500 * time.Millisecond, RetryAfter: 2500 * time.Millisecond}},
		{Rule: compiled(t, "free", `"unlimited":true`), State: limit.State{Allowed: true, Unlimited: true}},
		{Rule: compiled(t, "month", month), State: limit.State{Allowed: true, Limit: 1000, Remaining: 7, Reset: time.Hour}},
		{Rule: compiled(t, "never", hourly), State: limit.State{Limit: 10, Remaining: 3, Never: true}},
	}}
	policies, limits := fields(q)
	if want := `"dry";q=10;w=3600, "month";q=1000;w=2678400, "never";q=10;w=3600`; policies != want {
		t.Errorf("RateLimit-Policy: %s\nwant %s", policies, want)
	}
	if want := `"dry";r=0;t=3, "month";r=7;t=3600, "never";r=3`; limits != want {
		t.Errorf("RateLimit: %s\nwant %s", limits, want)
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
		if got, ok := charge.Wait(c.judged); got != c.want || ok != c.ok {
			t.Errorf("%+v: wait %d, %v, want %d, %v", c.judged, got, ok, c.want, c.ok)
		}
	}
}

func TestJitterOnlyAdds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wait  int64
		share float64
		most  int64
	}{
		{1, 0.1, 1}, {9, 0.1, 1}, {10, 0.1, 1}, {11, 0.1, 2}, {100, 0.1, 10}, {299, 0.1, 30}, {300, 0.1, 30}, {31_536_000, 1, 30},
		{5, 1, 5}, {60, 0.001, 1}, {60, 0, 0}, {1 << 60, 0.5, 30},
	} {
		seen := map[int64]bool{}
		for range 2000 {
			id := event.NewID(noon)
			n := jitter(id, c.wait, c.share)
			if n < 0 || n > c.most {
				t.Fatalf("wait %d, share %v: %d is added, at most %d", c.wait, c.share, n, c.most)
			}
			if jitter(id, c.wait, c.share) != n {
				t.Fatal("one decision has two answers")
			}
			seen[n] = true
		}
		if len(seen) != int(c.most)+1 {
			t.Errorf("wait %d, share %v: only %v are added", c.wait, c.share, seen)
		}
	}
}
