package rule_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

const (
	gcraRule  = `{"id":"g","subject":{"kind":"tenant","value":"*"},"metric":"m","limit":{"algorithm":"gcra","limit":30,"window":"1m","burst":10}}`
	fixedRule = `{"id":"f","subject":{"kind":"user","value":"acme/*"},"metric":"m","limit":{"algorithm":"fixedWindow","limit":30,"window":"1m"}}`
	quotaRule = `{"id":"q","subject":{"kind":"tenant","value":"acme"},"metric":"m","limit":{"algorithm":"quota","kind":"renewing","limit":30,"period":"month"}}`
	// walletRule is a prepaid quota.
	walletRule = `{"id":"w","subject":{"kind":"tenant","value":"acme"},"metric":"m","limit":{"algorithm":"quota","kind":"prepaid"}}`
)

// parse reads a rule and overwrites fields of it, as a merge patch would.
func parse(t testing.TB, base, patch string) rules.Rule {
	t.Helper()
	var doc, over map[string]any
	for text, into := range map[string]*map[string]any{base: &doc, patch: &over} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber() // 2^53+1 must stay that
		if err := d.Decode(into); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	merge(doc, over)
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var r rules.Rule
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func merge(doc, over map[string]any) {
	for k, v := range over {
		inner, isMap := v.(map[string]any)
		if had, ok := doc[k].(map[string]any); ok && isMap {
			merge(had, inner)
		} else if v == nil {
			delete(doc, k)
		} else {
			doc[k] = v
		}
	}
}

func fieldsOf(errs []rule.FieldError) []string {
	set := map[string]bool{}
	for _, e := range errs {
		set[e.Field] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func TestValidateAccepts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 128)
	for _, tc := range []struct{ base, patch string }{
		{gcraRule, `{}`}, {fixedRule, `{}`}, {quotaRule, `{}`},
		{gcraRule, `{"id":"a {b} : %2F 100% \"q\""}`},
		{gcraRule, `{"id":"` + long + `"}`},
		{gcraRule, `{"subject":{"value":"a:u {x} %"}}`},
		{gcraRule, `{"subject":{"kind":"user","value":"acme/u/1:x"}}`},
		{gcraRule, `{"subject":{"kind":"application","value":"acme/app"}}`},
		{gcraRule, `{"subject":{"kind":"apiKey","value":"key-1"}}`},
		{gcraRule, `{"subject":{"kind":"service","value":"payments"}}`},
		{gcraRule, `{"subject":{"kind":"endpoint","value":"payments GET /pay/{id}"}}`},
		{gcraRule, `{"subject":{"kind":"endpoint","value":"my service /pay/{rest...}"}}`},
		{gcraRule, `{"scope":{"service":"demo"}}`},
		{gcraRule, `{"scope":{"service":"demo","endpoint":"GET /demo/{$}"}}`},
		{gcraRule, `{"limit":{"limit":0,"burst":null}}`},
		{gcraRule, `{"limit":{"limit":0,"burst":0}}`},
		{gcraRule, `{"limit":{"burst":null}}`},
		{gcraRule, `{"limit":{"window":"1s"}}`},
		{gcraRule, `{"limit":{"window":"8760h"}}`},
		{gcraRule, `{"limit":{"limit":1125899906842624,"burst":1125899906842624}}`},
		{gcraRule, `{"limit":{"algorithm":"tokenBucket"}}`},
		{gcraRule, `{"limit":{"algorithm":"tokenBucket","burst":null}}`},
		{fixedRule, `{"limit":{"algorithm":"slidingWindow","limit":9007199254740992,"window":"8760h"}}`},
		{quotaRule, `{"limit":{"period":"hour"}}`}, {quotaRule, `{"limit":{"period":"year"}}`}, {quotaRule, `{"limit":{"period":"never"}}`},
		{quotaRule, `{"limit":{"period":"day","timezone":"Europe/Istanbul","rollover":0}}`},
		{quotaRule, `{"limit":{"anchorDay":31,"timezone":"America/Sao_Paulo","overdraft":"once","rollover":60}}`},
		{quotaRule, `{"limit":{"period":"week","weekStart":"sunday"}}`},
		{quotaRule, `{"limit":{"limit":9007199254740990,"rollover":2}}`},
		{gcraRule, `{"mode":"shadow"}`}, {gcraRule, `{"onStoreLoss":"local"}`}, {quotaRule, `{"onStoreLoss":"local"}`},
		{fixedRule, `{"limit":{"limit":9007199254740992}}`},
		{quotaRule, `{"limit":{"limit":0}}`},
		{quotaRule, `{"thresholds":{}}`},
		{quotaRule, `{"refundOn":["timeout","5xx","error","400","599"]}`},
		{gcraRule, `{"refundOn":["503"],"cost":2}`},
		{gcraRule, `{"refundOn":[],"cost":0}`},
		{quotaRule, `{"thresholds":{"percent":[100,1,1000],"absolute":[9007199254740992,1]}}`},
		{gcraRule, `{"limit":null,"unlimited":true,"thresholds":{"absolute":[5]}}`},
		{quotaRule, `{"limit":{"kind":null}}`}, {quotaRule, `{"limit":{"kind":""}}`},
		{walletRule, `{}`}, {walletRule, `{"limit":{"overdraft":"none"}}`}, {walletRule, `{"limit":{"overdraft":"once"},"cost":20}`},
		{walletRule, `{"subject":{"value":"*"},"scope":{"service":"s"},"onMissing":"deny","mode":"shadow"}`},
		{quotaRule, `{"limit":{"timezone":"UTC","anchorDay":1,"overdraft":"none"}}`},
		{gcraRule, `{"limit":null,"unlimited":true}`},
		{gcraRule, `{"limit":{"limit":null,"burst":null},"unlimited":true}`},
		{quotaRule, `{"limit":{"limit":null},"unlimited":true}`},
		{gcraRule, `{"cost":0}`}, {gcraRule, `{"cost":9007199254740992}`},
		{gcraRule, `{"mode":"off","onStoreLoss":"closed","onMissing":"deny","priority":-5}`},
		{fixedRule, `{"onMissing":"shared"}`},
		{gcraRule, `{"validFrom":"2026-01-01T00:00:00Z","validUntil":"2026-01-01T00:00:01Z"}`},
	} {
		r := parse(t, tc.base, tc.patch)
		if errs := rule.Validate(r); len(errs) > 0 {
			t.Errorf("%s: %v", tc.patch, errs)
		}
		n := rule.Normalize(r)
		if errs := rule.Validate(n); len(errs) > 0 {
			t.Errorf("%s: invalid once normalized: %v", tc.patch, errs)
		}
		if diff := cmp.Diff(n, rule.Normalize(n)); diff != "" {
			t.Errorf("%s: Normalize is not idempotent:\n%s", tc.patch, diff)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ base, patch, field, says string }{
		{gcraRule, `{"id":""}`, "id", "1 to 128"},
		{gcraRule, `{"id":"` + strings.Repeat("x", 129) + `"}`, "id", "1 to 128"},
		{gcraRule, `{"id":"a\nb"}`, "id", "printable"},
		{gcraRule, `{"id":"a\u007fb"}`, "id", "printable"},
		{gcraRule, `{"id":".."}`, "id", "dot segment"},
		{gcraRule, `{"id":"/"}`, "id", "slash alone"},
		{gcraRule, `{"name":"a\u0000"}`, "name", "printable"},
		{gcraRule, `{"subject":{"kind":""}}`, "subject.kind", "one of tenant, user"},
		{gcraRule, `{"subject":{"kind":"Tenant"}}`, "subject.kind", "one of"},
		{gcraRule, `{"subject":{"value":""}}`, "subject.value", "1 to 128"},
		{gcraRule, `{"subject":{"value":"ac*"}}`, "subject.value", "* alone"},
		{gcraRule, `{"subject":{"value":"acme/u1"}}`, "subject.value", "user and application"},
		{gcraRule, `{"subject":{"kind":"user","value":"u1"}}`, "subject.value", "tenant/name"},
		{gcraRule, `{"subject":{"kind":"user","value":"/u1"}}`, "subject.value", "tenant/name"},
		{gcraRule, `{"subject":{"kind":"user","value":"acme/"}}`, "subject.value", "tenant/name"},
		{gcraRule, `{"subject":{"kind":"user","value":"*/u1"}}`, "subject.value", "tenant/name"},
		{gcraRule, `{"subject":{"kind":"application","value":"acme/a*"}}`, "subject.value", "whole name"},
		{gcraRule, `{"subject":{"kind":"endpoint","value":"payments"}}`, "subject.value", "service METHOD /pattern"},
		{gcraRule, `{"subject":{"kind":"endpoint","value":"payments GET pay"}}`, "subject.value", "slash"},
		{gcraRule, `{"subject":{"kind":"endpoint","value":"payments GET /{a}b"}}`, "subject.value", "whole segment"},
		{gcraRule, `{"scope":{"service":"a\u0001"}}`, "scope.service", "printable"},
		{gcraRule, `{"scope":{"endpoint":"GET /x"}}`, "scope.service", "scope.endpoint belongs"},
		{gcraRule, `{"scope":{"service":"d","endpoint":"GET x"}}`, "scope.endpoint", "ServeMux"},
		{gcraRule, `{"scope":{"service":"d","endpoint":"GET /{a}/{a}"}}`, "scope.endpoint", "twice"},
		{gcraRule, `{"scope":{"service":"d","endpoint":"G T /x"}}`, "scope.endpoint", "slash"},
		{gcraRule, `{"metric":""}`, "metric", "1 to 64"},
		{gcraRule, `{"metric":"a b"}`, "metric", "letters"},
		{gcraRule, `{"limit":null}`, "limit", "unlimited"},
		{gcraRule, `{"limit":{"algorithm":""}}`, "limit.algorithm", "gcra, fixedWindow, slidingWindow, tokenBucket, quota"},
		{gcraRule, `{"limit":{"algorithm":"leaky"}}`, "limit.algorithm", "one of"},
		{gcraRule, `{"limit":{"limit":null}}`, "limit.limit", "must be given"},
		{gcraRule, `{"limit":{"limit":-1}}`, "limit.limit", "0 to"},
		{fixedRule, `{"limit":{"limit":9007199254740993}}`, "limit.limit", "9007199254740992"},
		{gcraRule, `{"limit":{"limit":1125899906842625}}`, "limit.limit", "1125899906842624 for gcra"},
		{gcraRule, `{"limit":{"burst":null},"unlimited":true}`, "limit.limit", "left out"},
		{gcraRule, `{"limit":{"limit":null},"unlimited":true}`, "limit.burst", "left out"},
		{gcraRule, `{"limit":{"window":""}}`, "limit.window", "duration"},
		{gcraRule, `{"limit":{"window":"1d"}}`, "limit.window", "duration"},
		{gcraRule, `{"limit":{"window":"0s"}}`, "limit.window", "1s to 8760h"},
		{gcraRule, `{"limit":{"window":"-1m"}}`, "limit.window", "1s to 8760h"},
		{gcraRule, `{"limit":{"window":"999ms"}}`, "limit.window", "whole seconds"},
		{gcraRule, `{"limit":{"window":"1500ms"}}`, "limit.window", "whole seconds"},
		{gcraRule, `{"limit":{"window":"8761h"}}`, "limit.window", "1s to 8760h"},
		{gcraRule, `{"limit":{"burst":0}}`, "limit.burst", "1 to"},
		{gcraRule, `{"limit":{"burst":-1}}`, "limit.burst", "1 to"},
		{gcraRule, `{"limit":{"limit":0,"burst":5}}`, "limit.burst", "lets nothing pass"},
		{gcraRule, `{"limit":{"limit":1,"window":"8760h","burst":1000}}`, "limit.burst", "at most 71"},
		{fixedRule, `{"limit":{"burst":5}}`, "limit.burst", "gcra"},
		{gcraRule, `{"limit":{"period":"month"}}`, "limit.period", "quota"},
		{gcraRule, `{"limit":{"kind":"renewing"}}`, "limit.kind", "quota"},
		{quotaRule, `{"limit":{"window":"1m"}}`, "limit.window", "period"},
		{quotaRule, `{"limit":{"burst":1}}`, "limit.burst", "gcra"},
		{quotaRule, `{"limit":{"kind":"new"}}`, "limit.kind", "one of renewing, prepaid"},
		{quotaRule, `{"limit":{"kind":"granted"}}`, "limit.kind", "prepaid"},
		{walletRule, `{"limit":{"limit":5}}`, "limit.limit", "topped up"},
		{walletRule, `{"limit":{"limit":0}}`, "limit.limit", "topped up"},
		{walletRule, `{"limit":{"burst":5}}`, "limit.burst", "topped up"},
		{walletRule, `{"limit":{"rollover":5}}`, "limit.rollover", "topped up"},
		{walletRule, `{"limit":{"window":"1m"}}`, "limit.window", "never renews"},
		{walletRule, `{"limit":{"period":"month"}}`, "limit.period", "never renews"},
		{walletRule, `{"limit":{"timezone":"UTC"}}`, "limit.timezone", "never renews"},
		{walletRule, `{"limit":{"anchorDay":1}}`, "limit.anchorDay", "never renews"},
		{walletRule, `{"limit":{"weekStart":"monday"}}`, "limit.weekStart", "never renews"},
		{walletRule, `{"limit":{"overdraft":"twice"}}`, "limit.overdraft", "one of none, once"},
		{walletRule, `{"unlimited":true}`, "unlimited", "lifts the wallet"},
		{walletRule, `{"subject":{"kind":"user","value":"acme/u1"}}`, "subject.kind", "must be tenant"},
		{walletRule, `{"onMissing":"shared"}`, "onMissing", "skip or deny"},
		{quotaRule, `{"limit":{"period":""}}`, "limit.period", "month"},
		{gcraRule, `{"limit":{"algorithm":"tokenBucket","limit":1125899906842625}}`, "limit.limit", "for tokenBucket"},
		{gcraRule, `{"limit":{"algorithm":"tokenBucket","limit":1,"window":"8760h","burst":1000}}`, "limit.burst", "at most 71"},
		{fixedRule, `{"limit":{"algorithm":"slidingWindow","burst":5}}`, "limit.burst", "tokenBucket"},
		{fixedRule, `{"limit":{"rollover":5}}`, "limit.rollover", "quota"},
		{quotaRule, `{"limit":{"timezone":"Mars/Olympus"}}`, "limit.timezone", "IANA"},
		{quotaRule, `{"limit":{"period":"day","anchorDay":2}}`, "limit.anchorDay", "period month"},
		{quotaRule, `{"limit":{"period":"week","weekStart":"Monday"}}`, "limit.weekStart", "one of monday"},
		{quotaRule, `{"limit":{"period":"never","rollover":5}}`, "limit.rollover", "no next one"},
		{quotaRule, `{"limit":{"limit":9007199254740991,"rollover":2}}`, "limit.rollover", "with limit at most"},
		{quotaRule, `{"limit":{"limit":null,"rollover":2},"unlimited":true}`, "limit.rollover", "unlimited"},
		{quotaRule, `{"limit":{"limit":null,"overdraft":"once"},"unlimited":true}`, "limit.overdraft", "unlimited"},
		{quotaRule, `{"limit":{"period":"fortnight"}}`, "limit.period", "one of hour, day"},
		{quotaRule, `{"limit":{"anchorDay":32}}`, "limit.anchorDay", "1 to 31"},
		{quotaRule, `{"limit":{"weekStart":"monday"}}`, "limit.weekStart", "period week"},
		{quotaRule, `{"limit":{"rollover":-1}}`, "limit.rollover", "0 or more"},
		{quotaRule, `{"limit":{"overdraft":"twice"}}`, "limit.overdraft", "one of none, once"},
		{quotaRule, `{"limit":{"limit":9007199254740993}}`, "limit.limit", "9007199254740992"},
		{gcraRule, `{"thresholds":{}}`, "thresholds", "belongs to algorithm quota"},
		{gcraRule, `{"refundOn":["5xx","4xx"]}`, "refundOn[1]", "5xx, timeout, error or a status 400 to 599"},
		{gcraRule, `{"refundOn":["399"]}`, "refundOn[0]", "400 to 599"},
		{gcraRule, `{"refundOn":["600"]}`, "refundOn[0]", "400 to 599"},
		{gcraRule, `{"refundOn":["+503"]}`, "refundOn[0]", "400 to 599"},
		{gcraRule, `{"refundOn":[""]}`, "refundOn[0]", "400 to 599"},
		{gcraRule, `{"refundOn":["5xx","5xx"]}`, "refundOn[1]", "named once"},
		{gcraRule, `{"refundOn":["5xx"],"cost":0}`, "refundOn", "a rule that charges"},
		{quotaRule, `{"thresholds":{"percent":[80,0]}}`, "thresholds.percent[1]", "1 to 1000"},
		{quotaRule, `{"thresholds":{"percent":[1001]}}`, "thresholds.percent[0]", "1 to 1000"},
		{quotaRule, `{"thresholds":{"absolute":[9007199254740993]}}`, "thresholds.absolute[0]", "1 to 9007199254740992"},
		{quotaRule, `{"thresholds":{"percent":[80,80]}}`, "thresholds.percent[1]", "named once"},
		{quotaRule, `{"thresholds":{"percent":[1,2,3,4,5,6],"absolute":[1,2,3,4,5]}}`, "thresholds", "at most 10"},
		{gcraRule, `{"cost":-1}`, "cost", "0 to"},
		{gcraRule, `{"cost":9007199254740993}`, "cost", "0 to"},
		{gcraRule, `{"mode":"on"}`, "mode", "one of enforce, shadow, off"},
		{gcraRule, `{"onStoreLoss":"x"}`, "onStoreLoss", "open, closed, local"},
		{gcraRule, `{"onMissing":"x"}`, "onMissing", "skip, shared, deny"},
		{quotaRule, `{"onMissing":"deny"}`, "onMissing", "* or tenant/*"},
		{gcraRule, `{"priority":1000001}`, "priority", "1000000"},
		{gcraRule, `{"validFrom":"1969-12-31T00:00:00Z"}`, "validFrom", "1970"},
		{gcraRule, `{"validFrom":"2026-01-01T00:00:00Z","validUntil":"2026-01-01T00:00:00Z"}`, "validUntil", "after validFrom"},
	} {
		errs := rule.Validate(parse(t, tc.base, tc.patch))
		if got := fieldsOf(errs); !slices.Equal(got, []string{tc.field}) {
			t.Errorf("%s: fields %q, want %q alone: %v", tc.patch, got, tc.field, errs)
			continue
		}
		if !strings.Contains(errs[0].Message, tc.says) {
			t.Errorf("%s: %q does not say %q", tc.patch, errs[0], tc.says)
		}
	}
}

// JSON has no way to carry invalid UTF-8 into a rule, other callers do.
func TestValidateRefusesInvalidUTF8(t *testing.T) {
	t.Parallel()
	r := parse(t, gcraRule, `{}`)
	r.ID, r.Name, r.Subject.Value, r.Scope.Service = "\xff", "\xff", "\xff", "\xff"
	want := []string{"id", "name", "scope.service", "subject.value"}
	if got := fieldsOf(rule.Validate(r)); !slices.Equal(got, want) {
		t.Errorf("fields %q, want %q", got, want)
	}
}

// Whoever writes a rule hears of all that is wrong with it at once.
func TestValidateTellsAllMistakes(t *testing.T) {
	t.Parallel()
	for patch, want := range map[string]string{
		`{"id":"","subject":{"kind":"planet","value":""},"metric":"a b","limit":{"algorithm":"leaky","limit":-1,"window":"1d","burst":-1},"mode":"on"}`: "id limit.algorithm limit.burst limit.limit limit.window metric mode subject.kind subject.value",
		`{"limit":{"algorithm":"quota","window":"1m","burst":1,"period":"fortnight","kind":"x"}}`:                                                       "limit.burst limit.kind limit.period limit.window",
		`{"limit":{"algorithm":"leaky","period":"week","weekStart":"Monday","window":"1m"}}`:                                                            "limit.algorithm limit.weekStart",
	} {
		if got := strings.Join(fieldsOf(rule.Validate(parse(t, gcraRule, patch))), " "); got != want {
			t.Errorf("%s: fields %s, want %s", patch, got, want)
		}
	}
}

func TestNormalizeDefaults(t *testing.T) {
	t.Parallel()
	r := parse(t, gcraRule, `{"limit":{"burst":null}}`)
	n := rule.Normalize(r)
	if *n.Limit.Burst != 30 || n.Mode != "enforce" || n.OnStoreLoss != "open" || n.OnMissing != "skip" {
		t.Errorf("%+v %+v", n, n.Limit)
	}
	if r.Limit.Burst != nil || r.Mode != "" {
		t.Error("Normalize changed its argument")
	}
	q := rule.Normalize(parse(t, quotaRule, `{}`))
	if q.OnStoreLoss != "closed" || q.Limit.Timezone != "UTC" || q.Limit.AnchorDay != 1 || q.Limit.Overdraft != "none" {
		t.Errorf("%+v %+v", q, q.Limit)
	}
	u := rule.Normalize(parse(t, quotaRule, `{"limit":null,"unlimited":true}`))
	if u.OnStoreLoss != "open" {
		t.Errorf("an unlimited rule fails %s", u.OnStoreLoss)
	}
}
