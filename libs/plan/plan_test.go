package plan_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

const goodPlan = `{"id":"pro","version":1,"name":"Pro","currency":"EUR","proration":"days","baseFee":"49.00","rules":[
	{"metric":"calls","limit":{"algorithm":"quota","kind":"renewing","limit":3100}},
	{"metric":"calls","limit":{"algorithm":"gcra","limit":10,"window":"1s"}}],
	"prices":[{"metric":"calls","model":"graduated","included":1000,"tiers":[{"upTo":2000,"unitPrice":"0.004"},{"unitPrice":"0.002","flatFee":"1.50"}]}]}`

func parse[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func planWith(old, replacement string) string {
	return strings.Replace(goodPlan, old, replacement, 1)
}

func TestPlansAreRefusedByName(t *testing.T) {
	t.Parallel()
	if found := plan.ValidatePlan(parse[sales.Plan](t, goodPlan)); found != nil {
		t.Fatalf("the good plan: %v", found)
	}
	const tiers = `[{"upTo":2000,"unitPrice":"0.004"},{"unitPrice":"0.002","flatFee":"1.50"}]`
	for _, c := range []struct{ old, replacement, field, says string }{
		{`"id":"pro"`, `"id":".."`, "id", "dot segment"},
		{`"name":"Pro"`, `"name":"P\u0000"`, "name", "printable"},
		{`"EUR"`, `"eur"`, "currency", "ISO 4217"},
		{`"EUR"`, `"XXX"`, "currency", "ISO 4217"},
		{`"days"`, `"hours"`, "proration", "none or days"},
		{`"49.00"`, `"49.001"`, "baseFee", "2 behind the point for EUR"},
		{`"49.00"`, `"-1"`, "baseFee", "decimal"},
		{`"49.00"`, `"1e3"`, "baseFee", "decimal"},
		{`"49.00"`, `"."`, "baseFee", "decimal"},
		{`"49.00"`, `"1234567890"`, "baseFee", "9 digits"},
		{`"EUR","proration":"days","baseFee":"49.00"`, `"JPY","baseFee":"49.0"`, "baseFee", "0 behind the point for JPY"},
		{`"proration"`, `"period":"hour","proration"`, "period", "day, week, month, year"},
		{`"proration"`, `"anchorDay":32,"proration"`, "anchorDay", "1 to 31"},
		{`"proration"`, `"weekStart":"monday","proration"`, "weekStart", "belongs to period week"},
		{`"proration"`, `"timezone":"Mars/Base","proration"`, "timezone", "IANA"},
		{`"limit":3100`, `"limit":-1`, "rules[0].limit.limit", "0 to"},
		{`"limit":3100`, `"limit":9007199254740993`, "rules[0].limit.limit", "0 to"},
		{`"window":"1s"`, `"window":"soon"`, "rules[1].limit.window", "duration"},
		{`"kind":"renewing"`, `"kind":"rented"`, "rules[0].limit.kind", "one of"},
		{`"metric":"calls","limit":{"algorithm":"gcra"`, `"metric":"a b","limit":{"algorithm":"gcra"`, "rules[1].metric", "letters"},
		{`{"algorithm":"gcra","limit":10,"window":"1s"}`, `{"algorithm":"quota","kind":"renewing","limit":1}`, "rules[1].metric", "must differ"},
		{`{"algorithm":"gcra","limit":10,"window":"1s"}`, `{"algorithm":"quota","kind":"renewing","limit":1},"scope":{"service":"s"}`, "rules[1].metric", "prorates"},
		{`"metric":"calls","model"`, `"metric":"other","model"`, "prices[0].metric", "counts"},
		{`"kind":"renewing","limit":3100`, `"kind":"renewing","limit":3100,"period":"day"`, "prices[0].metric", "by the plan's period"},
		{`"graduated"`, `"steps"`, "prices[0].model", "flat, graduated or volume"},
		{`"graduated"`, `"flat"`, "prices[0].tiers", "leave it out"},
		{`"included":1000`, `"included":-1`, "prices[0].included", "0 to"},
		{tiers, `[]`, "prices[0].tiers", "1 to"},
		{`"included":1000`, `"unitPrice":"1"`, "prices[0].unitPrice", "each tier"},
		{`"upTo":2000`, `"upTo":0`, "prices[0].tiers[0].upTo", "must be 1 to"},
		{`"upTo":2000,`, ``, "prices[0].tiers[0].upTo", "only the last"},
		{`{"unitPrice":"0.002"`, `{"upTo":3000,"unitPrice":"0.002"`, "prices[0].tiers[1].upTo", "last tier"},
		{`"0.004"`, `"0.0000000004"`, "prices[0].tiers[0].unitPrice", "9 behind"},
		{`"1.50"`, `"1.505"`, "prices[0].tiers[1].flatFee", "2 behind"},
	} {
		found := plan.ValidatePlan(parse[sales.Plan](t, planWith(c.old, c.replacement)))
		i := slices.IndexFunc(found, func(e plan.FieldError) bool { return e.Field == c.field })
		if i < 0 || !strings.Contains(found[i].Message, c.says) {
			t.Errorf("%s: says %v, want %s: …%s…", c.replacement, found, c.field, c.says)
		}
	}
	for _, empty := range []string{`"rules":[]`, `"rules":null`} {
		p := parse[sales.Plan](t, `{"id":"p","currency":"EUR",`+empty+`}`)
		if found := plan.ValidatePlan(p); len(found) != 1 || found[0].Field != "rules" {
			t.Errorf("%s: says %v", empty, found)
		}
	}
}

// A template is a rule without what is the subscriber's: a field that rules
// gain is one that plans can sell.
func TestTemplatesHaveTheFieldsOfRules(t *testing.T) {
	t.Parallel()
	// The subject's tenant is always there, and validity is the subscription's.
	own := []string{"id", "version", "subject", "onMissing", "validFrom", "validUntil", "origin"}
	template, whole := fields(reflect.TypeFor[sales.Template]()), fields(reflect.TypeFor[rules.Rule]())
	for name, typ := range whole {
		if slices.Contains(own, name) {
			continue
		}
		if template[name] != typ {
			t.Errorf("field %s of rules is %v in templates, not %v", name, template[name], typ)
		}
	}
	// Each reaches the rule.
	full := `{"name":"n","scope":{"service":"s"},"metric":"m","limit":{"algorithm":"quota","kind":"renewing","limit":5,"period":"day"},
		"cost":3,"mode":"shadow","onStoreLoss":"local","priority":4,"countCached":false,"thresholds":{"percent":[50]},"refundOn":["5xx"]}`
	p := sales.Plan{ID: "p", Version: 1, Currency: "EUR", Rules: []sales.Template{parse[sales.Template](t, full)}}
	got := terms(t, subscribed(p, "2026-07-01T00:00:00Z"), sales.Customer{ID: "acme"}, "2026-07-01T00:00:00Z", p).Rules[0]
	rule := reflect.ValueOf(got)
	for i := range rule.NumField() {
		name, _, _ := strings.Cut(rule.Type().Field(i).Tag.Get("json"), ",")
		if !slices.Contains(own, name) && name != "unlimited" && rule.Field(i).IsZero() {
			t.Errorf("field %s of a template does not reach its rule", name)
		}
	}
}

func fields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out[name] = t.Field(i).Type
	}
	return out
}

func TestNanos(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"": 0, "0": 0, "49": 49e9, "0.0004": 400_000, "0.000000001": 1, "999999999.999999999": 999999999999999999, "007.5": 75e8,
	} {
		if got, ok := plan.Nanos(text); !ok || got != want {
			t.Errorf("%q is %d, %t; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"-1", "+1", ".5", "5.", "1,5", "1e3", " 1", "1234567890", "0.0000000001", "٣", "NaN"} {
		if got, ok := plan.Nanos(text); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func mustParse(t interface{ Fatalf(string, ...any) }, text string, into any) {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
