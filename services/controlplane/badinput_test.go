package controlplane_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const goodRule = `{"id":"a","subject":{"kind":"tenant","value":"*"},"metric":"hellos","limit":{"algorithm":"gcra","limit":30,"window":"1m","burst":10}}`

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// ruleWith is goodRule with one piece replaced.
func ruleWith(old, replacement string) string { return strings.Replace(goodRule, old, replacement, 1) }

const topUpPath = "/v1/customers/acme/wallets/reports/topups"

func topUpWith(key, body string) request {
	return request{method: "POST", path: topUpPath, body: body, header: map[string]string{"Idempotency-Key": key}}
}

var anyVersion = map[string]string{"If-Match": "*"}

// badInputs are requests that are wrong in one way each. None needs the
// database: it is away, so that a mistake which reached it would be a 503.
var badInputs = []struct {
	name   string
	is     request
	status int
	field  string // of the first error; - where there is none
	says   string
}{
	{"wrong type", request{body: ruleWith(`"tenant"`, `7`)}, 400, "subject.kind", "must be a string, not the number 7"},
	{"wrong type of limit", request{body: ruleWith(`30`, `"30"`)}, 400, "limit.limit", "must be a whole number"},
	{"fraction", request{body: ruleWith(`30`, `1.5`)}, 400, "limit.limit", "whole number"},
	{"exponent", request{body: ruleWith(`30`, `1e400`)}, 400, "limit.limit", "whole number"},
	{"unknown algorithm", request{body: ruleWith(`gcra`, `leaky`)}, 400, "limit.algorithm", "must be one of"},
	{"prepaid period", request{body: ruleWith(`"algorithm":"gcra","limit":30,"window":"1m","burst":10`, `"algorithm":"quota","kind":"prepaid","period":"month"`)}, 400, "limit.period", "never renews"},
	{"prepaid limit", request{body: ruleWith(`"algorithm":"gcra","limit":30,"window":"1m","burst":10`, `"algorithm":"quota","kind":"prepaid","limit":30`)}, 400, "limit.limit", "topped up"},
	{"refunds of what", request{body: ruleWith(`"metric"`, `"refundOn":["5xx","maybe"],"metric"`)}, 400, "refundOn[1]", "must be 5xx, timeout, error or a status"},
	{"refunds of nothing", request{body: ruleWith(`"metric"`, `"refundOn":["5xx"],"cost":0,"metric"`)}, 400, "refundOn", "a rule that charges"},
	{"thresholds of a rate", request{body: ruleWith(`"metric"`, `"thresholds":{"percent":[80]},"metric"`)}, 400, "thresholds", "belongs to algorithm quota"},
	{"negative", request{body: ruleWith(`30`, `-1`)}, 400, "limit.limit", "must be 0 to"},
	{"over 2^53", request{body: ruleWith(`30`, `9007199254740993`)}, 400, "limit.limit", "must be 0 to"},
	{"over 2^63", request{body: ruleWith(`30`, `92233720368547758080`)}, 400, "limit.limit", "64 bits"},
	{"window 0", request{body: ruleWith(`1m`, `0s`)}, 400, "limit.window", "1s"},
	{"no duration", request{body: ruleWith(`1m`, `soon`)}, 400, "limit.window", "30s, 1m"},
	{"unknown field", request{body: ruleWith(`"metric"`, `"colour":1,"metric"`)}, 400, "colour", "is not a field"},
	{"unknown field below", request{body: ruleWith(`"window"`, `"windows":1,"window"`)}, 400, "limit.windows", "is not a field"},
	{"other case", request{body: ruleWith(`"metric"`, `"Metric"`)}, 400, "Metric", "is not a field"},
	{"twice", request{body: ruleWith(`"metric"`, `"id":"b","metric"`)}, 400, "id", "twice"},
	{"bad pattern", request{body: ruleWith(`"metric"`, `"scope":{"service":"s","endpoint":"GET /a/{"},"metric"`)}, 400, "scope.endpoint", "ServeMux"},
	{"missing metric", request{body: ruleWith(`"metric":"hellos",`, ``)}, 400, "metric", "must be"},
	{"no body", request{}, 400, "", "must be a JSON object"},
	{"array", request{body: `[]`}, 400, "", "must be an object"},
	{"null", request{body: `null`}, 400, "", "must be an object"},
	{"not JSON", request{body: `{"id":`}, 400, "", "line 1"},
	{"trailing", request{body: goodRule + `x`}, 400, "", "after top-level"},
	{"invalid UTF-8", request{body: ruleWith(`hellos`, "hel\xfflos")}, 400, "", "UTF-8"},
	{"NUL", request{body: ruleWith(`"id":"a"`, `"id":"a\u0000"`)}, 400, "id", "NUL"},
	{"control in id", request{body: ruleWith(`"id":"a"`, `"id":"a\u0001"`)}, 400, "id", "printable"},
	{"long id", request{body: ruleWith(`"id":"a"`, `"id":"`+strings.Repeat("x", 200)+`"`)}, 400, "id", "1 to 128"},
	{"2 MB", request{body: ruleWith(`"id":"a"`, `"name":"`+strings.Repeat("x", 2<<20)+`"`)}, 413, "-", "at most 1048576"},
	{"form", request{body: goodRule, header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}, 415, "-", "application/json"},
	{"latin-1", request{body: goodRule, header: map[string]string{"Content-Type": "application/json; charset=latin1"}}, 415, "-", "UTF-8"},
	{"gzip", request{body: goodRule, header: map[string]string{"Content-Encoding": "gzip"}}, 415, "-", "Content-Encoding"},
	{"media type", request{body: goodRule, header: map[string]string{"Content-Type": "a/b/c;;"}}, 415, "-", "application/json"},

	{"no If-Match", request{method: "PUT", path: "/v1/rules/a", body: goodRule}, 428, "-", "If-Match"},
	{"no If-Match to create", request{method: "PUT", path: "/v1/rules/a?dryRun=true", body: goodRule}, 428, "-", "If-None-Match: *"},
	{"no If-Match to delete", request{method: "DELETE", path: "/v1/rules/a"}, 428, "-", "If-Match"},
	{"bare If-Match", request{method: "PUT", path: "/v1/rules/a", body: goodRule, header: map[string]string{"If-Match": "17"}}, 400, "If-Match", "in quotes"},
	{"both", request{method: "PUT", path: "/v1/rules/a", body: goodRule, header: map[string]string{"If-Match": "*", "If-None-Match": "*"}}, 400, "If-None-Match", "together"},
	{"If-None-Match of a tag", request{method: "PUT", path: "/v1/rules/a", body: goodRule, header: map[string]string{"If-None-Match": `"1"`}}, 400, "If-None-Match", "must be *"},
	{"If-None-Match to delete", request{method: "DELETE", path: "/v1/rules/a", header: map[string]string{"If-None-Match": "*"}}, 400, "If-None-Match", "on PUT"},
	{"another id", request{method: "PUT", path: "/v1/rules/b", body: goodRule, header: anyVersion}, 400, "id", "the one in the path"},
	{"slash as id", request{body: ruleWith(`"id":"a"`, `"id":"/"`)}, 400, "id", "slash alone"},
	{"slash as name", request{path: "/v1/services", body: `{"name":"/","prefix":"/s/","upstreams":[{"url":"http://a"}]}`}, 400, "name", "slash alone"},
	{"UTF-8 in path", request{method: "GET", path: "/v1/rules/%ff"}, 400, "", "UTF-8"},
	{"NUL in path", request{method: "GET", path: "/v1/rules/a%00b"}, 400, "", "NUL"},

	{"limit 0", request{method: "GET", path: "/v1/rules?limit=0"}, 400, "limit", ">= 1"},
	{"limit 501", request{method: "GET", path: "/v1/rules?limit=501"}, 400, "limit", "<= 500"},
	{"limit x", request{method: "GET", path: "/v1/rules?limit=x"}, 400, "limit", "must be a whole number"},
	{"cursor", request{method: "GET", path: "/v1/rules?cursor=!"}, 400, "cursor", "next of an earlier page"},
	{"another list's cursor", request{method: "GET", path: "/v1/rules?cursor=a2V5AGE"}, 400, "cursor", "this list"},
	{"unknown parameter", request{method: "GET", path: "/v1/rules?limitt=1"}, 400, "limitt", "unknown"},
	{"repeated parameter", request{method: "GET", path: "/v1/rules?limit=1&limit=2"}, 400, "limit", "once"},
	{"bad escape", request{method: "GET", path: "/v1/rules?limit=%zz"}, 400, "", "percent escapes"},
	{"UTF-8 in query", request{method: "GET", path: "/v1/rules?service=%ff"}, 400, "service", "UTF-8"},
	{"NUL in query", request{method: "GET", path: "/v1/audit?id=%00"}, 400, "id", "NUL"},
	{"time", request{method: "GET", path: "/v1/usage?from=yesterday"}, 400, "from", "must be RFC 3339, such as 2026-07-23T00:00:00Z"},
	{"decision in small letters", request{method: "GET", path: "/v1/usage?decision=deny"}, 400, "decision", "ALLOW, DENY, SHADOW"},
	{"no decision", request{method: "GET", path: "/v1/usage?decision=ALLOWED"}, 400, "decision", "ALLOW, DENY, SHADOW"},
	{"the first time there is", request{method: "GET", path: "/v1/audit?to=0001-01-01T00:00:00Z"}, 400, "to", "must be after 0001-01-01T00:00:00Z, or be left out"},
	{"the first time there is, by another clock", request{method: "GET", path: "/v1/usage?from=2026-02-01T00:00:00Z&to=0001-01-01T03:00:00%2B03:00"}, 400, "to", "be left out"},
	{"before the first time there is", request{method: "GET", path: "/v1/usage?from=0001-01-01T00:00:01Z&to=0001-01-01T00:00:00-00:00"}, 400, "to", "be left out"},
	{"times", request{method: "GET", path: "/v1/audit?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z"}, 400, "to", "after from"},
	{"audit kind", request{method: "GET", path: "/v1/audit?kind=x"}, 400, "kind", "one of"},
	{"audit cursor of id 0", request{method: "GET", path: "/v1/audit?cursor=YXVkaXQAMA"}, 400, "cursor", "this list"},
	{"audit cursor of id -5", request{method: "GET", path: "/v1/audit?cursor=YXVkaXQALTU"}, 400, "cursor", "this list"},
	{"audit cursor", request{method: "GET", path: "/v1/audit?cursor=YXVkaXQAeA"}, 400, "cursor", "this list"},

	{"override of all", request{path: "/v1/overrides", body: `{"subject":{"kind":"tenant","value":"*"},"metric":"m","limit":1}`}, 400, "subject.value", "must be exact"},
	{"override without numbers", request{path: "/v1/overrides", body: `{"subject":{"kind":"tenant","value":"a"},"metric":"m"}`}, 400, "limit", "must be given"},
	{"override of another id", request{path: "/v1/overrides", body: `{"id":"mine","subject":{"kind":"tenant","value":"a"},"metric":"m","limit":1}`}, 400, "id", "tenant:a:m"},
	{"override of two horizons", request{path: "/v1/overrides", body: `{"subject":{"kind":"tenant","value":"a"},"metric":"m","limit":1,"window":"1m","period":"day"}`}, 400, "period", "one or the other"},
	{"override under another id", request{method: "PUT", path: "/v1/overrides/tenant:b:m", body: `{"subject":{"kind":"tenant","value":"a"},"metric":"m","limit":1}`, header: anyVersion}, 400, "id", "the one in the path"},
	{"service without prefix", request{path: "/v1/services", body: `{"name":"s","prefix":"s","upstreams":[{"url":"http://a"}]}`}, 400, "prefix", "begin and end"},
	{"service without name", request{path: "/v1/services", body: `{"prefix":"/s/","upstreams":[{"url":"http://a"}]}`}, 400, "name", "1 to 128"},
	{"upstream", request{path: "/v1/services", body: `{"name":"s","prefix":"/s/","upstreams":[{"url":"a"}]}`}, 400, "upstreams[0].url", "http://"},
	{"endpoint elsewhere", request{path: "/v1/services", body: `{"name":"s","prefix":"/s/","upstreams":[{"url":"http://a"}],"endpoints":[{"pattern":"GET /t/"}]}`}, 400, "endpoints[0].pattern", "under"},

	{"customer without name", request{path: "/v1/customers", body: `{"id":"a"}`}, 400, "name", "1 to 256"},
	{"customer without id", request{path: "/v1/customers", body: `{"name":"A"}`}, 400, "id", "1 to 128"},
	{"customer with a slash", request{path: "/v1/customers", body: `{"id":"a/b","name":"A"}`}, 400, "id", "slash"},
	{"customer of all", request{path: "/v1/customers", body: `{"id":"*","name":"A"}`}, 400, "id", "stands for every"},
	{"customer as a dot", request{path: "/v1/customers", body: `{"id":"..","name":"A"}`}, 400, "id", "dot segment"},
	{"customer elsewhere", request{path: "/v1/customers", body: `{"id":"a","name":"A","timezone":"Mars/Base"}`}, 400, "timezone", "IANA"},
	{"customer of no currency", request{path: "/v1/customers", body: `{"id":"a","name":"A","currency":"eur"}`}, 400, "currency", "ISO 4217"},
	{"customer of gold", request{path: "/v1/customers", body: `{"id":"a","name":"A","currency":"XAU"}`}, 400, "currency", "ISO 4217"},
	{"customer's email", request{path: "/v1/customers", body: `{"id":"a","name":"A","contact":{"email":"A <a@b.example>"}}`}, 400, "contact.email", "without a name"},
	{"customer under another id", request{method: "PUT", path: "/v1/customers/b", body: `{"id":"a","name":"A"}`, header: anyVersion}, 400, "id", "the one in the path"},
	{"customer put blindly", request{method: "PUT", path: "/v1/customers/a", body: `{"name":"A"}`}, 428, "-", "If-Match"},

	{"plan without rules", request{path: "/v1/plans", body: `{"id":"p","currency":"EUR","rules":[]}`}, 400, "rules", "1 to 32"},
	{"plan without currency", request{path: "/v1/plans", body: `{"id":"p","rules":[{"metric":"m","unlimited":true}]}`}, 400, "currency", "ISO 4217"},
	{"plan with a rule's subject", request{path: "/v1/plans", body: `{"id":"p","currency":"EUR","rules":[{"metric":"m","unlimited":true,"subject":{}}]}`}, 400, "rules[0].subject", "not part of a template"},
	{"plan with a number as money", request{path: "/v1/plans", body: `{"id":"p","currency":"EUR","baseFee":49,"rules":[{"metric":"m","unlimited":true}]}`}, 400, "baseFee", "must be a string"},
	{"plan with a fraction of a cent", request{path: "/v1/plans", body: `{"id":"p","currency":"EUR","baseFee":"0.001","rules":[{"metric":"m","unlimited":true}]}`}, 400, "baseFee", "2 behind"},
	{"plan put blindly", request{method: "PUT", path: "/v1/plans/p", body: goodPlan}, 428, "-", "If-Match"},
	{"plan under another id", request{method: "PUT", path: "/v1/plans/other", body: goodPlan, header: anyVersion}, 400, "id", "the one in the path"},
	{"plan's version 0", request{method: "GET", path: "/v1/plans/p/versions/0"}, 400, "version", ">= 1"},
	{"subscription of nobody", request{path: "/v1/subscriptions", body: `{"plan":"pro"}`}, 400, "customer", "customer"},
	{"subscription to nothing", request{path: "/v1/subscriptions", body: `{"customer":"acme"}`}, 400, "plan", "plan"},
	{"subscription with an id", request{path: "/v1/subscriptions", body: `{"id":"mine","customer":"acme","plan":"pro"}`}, 400, "id", "leave it out"},
	{"subscription of a negative version", request{path: "/v1/subscriptions", body: `{"customer":"acme","plan":"pro","planVersion":-1}`}, 400, "planVersion", "version of the plan"},
	{"subscription put blindly", request{method: "PUT", path: "/v1/subscriptions/s", body: `{"customer":"acme","plan":"pro"}`}, 428, "-", "If-Match"},
	{"subscription under another id", request{method: "PUT", path: "/v1/subscriptions/s", body: `{"id":"r","customer":"acme","plan":"pro"}`, header: anyVersion}, 400, "id", "the one in the path"},
	{"subscription ended blindly", request{method: "DELETE", path: "/v1/subscriptions/s"}, 428, "-", "If-Match"},
	{"subscriptions in no state", request{method: "GET", path: "/v1/subscriptions?status=gone"}, 400, "status", "one of"},
	{"move from nowhere", request{path: "/v1/plans/p/moves", body: `{"to":2,"all":true}`}, 400, "from", "version"},
	{"move to where it is", request{path: "/v1/plans/p/moves", body: `{"from":2,"to":2,"all":true}`}, 400, "to", "another version"},
	{"move of nobody", request{path: "/v1/plans/p/moves", body: `{"from":1,"to":2}`}, 400, "customers", "or all"},
	{"move of all and some", request{path: "/v1/plans/p/moves", body: `{"from":1,"to":2,"all":true,"customers":["a"]}`}, 400, "customers", "or all"},
	{"move's cursor", request{path: "/v1/plans/p/moves", body: `{"from":1,"to":2,"all":true,"cursor":"x"}`}, 400, "cursor", "next"},
	{"top-up without a key", topUpWith("", `{"amount":5}`), 400, "Idempotency-Key", "must be given"},
	{"top-up with a key of spaces", topUpWith("a b", `{"amount":5}`), 400, "Idempotency-Key", "visible ASCII"},
	{"top-up with a long key", topUpWith(strings.Repeat("k", 256), `{"amount":5}`), 400, "Idempotency-Key", "1 to 255"},
	{"top-up of nothing", topUpWith("k", `{}`), 400, "amount", "1 to 9007199254740991"},
	{"top-up of 0", topUpWith("k", `{"amount":0}`), 400, "amount", "1 to"},
	{"negative top-up", topUpWith("k", `{"amount":-5}`), 400, "amount", "1 to"},
	{"fractional top-up", topUpWith("k", `{"amount":1.5}`), 400, "amount", "whole number"},
	{"top-up in words", topUpWith("k", `{"amount":"5"}`), 400, "amount", "whole number"},
	{"top-up of 2^53", topUpWith("k", `{"amount":9007199254740992}`), 400, "amount", "1 to 9007199254740991"},
	{"overlong top-up", topUpWith("k", `{"amount":`+strings.Repeat("9", 400)+`}`), 400, "amount", "whole number"},
	{"top-up with an exponent", topUpWith("k", `{"amount":1e3}`), 400, "amount", "whole number"},
	{"top-up for ever", topUpWith("k", `{"amount":5,"expiresAt":"9999-01-01T00:00:00Z"}`), 400, "expiresAt", "at the latest"},
	{"top-up until tomorrow", topUpWith("k", `{"amount":5,"expiresAt":"tomorrow"}`), 400, "expiresAt", "RFC 3339"},
	{"top-up in euros", topUpWith("k", `{"amount":5,"currency":"EUR"}`), 400, "currency", "is not a field"},
	{"top-up of a priority", topUpWith("k", `{"amount":5,"priority":1000001}`), 400, "priority", "1000000"},
	{"top-up with a novel", topUpWith("k", `{"amount":5,"note":"`+strings.Repeat("x", 257)+`"}`), 400, "note", "at most 256"},
	{"top-up of no metric", request{path: "/v1/customers/acme/wallets/a%20b/topups", body: `{"amount":5}`, header: map[string]string{"Idempotency-Key": "k"}}, 400, "metric", "letters"},
	{"top-up as a form", request{path: topUpPath, body: "amount=5", header: map[string]string{"Idempotency-Key": "k", "Content-Type": "application/x-www-form-urlencoded"}}, 415, "-", "application/json"},
	{"wallet of no metric", request{method: "GET", path: "/v1/customers/acme/wallets/a%20b"}, 400, "metric", "letters"},

	{"id with a space before", request{body: ruleWith(`"id":"a"`, `"id":" a"`)}, 400, "id", "must not begin or end with a space"},
	{"subject with a space after", request{body: ruleWith(`"value":"*"`, `"value":"acme "`)}, 400, "subject.value", "begin or end with a space"},
	{"user's tenant with a space after", request{body: ruleWith(`"tenant","value":"*"`, `"user","value":"acme /u1"`)}, 400, "subject.value", "begin or end with a space"},
	{"user with a space before", request{path: "/v1/overrides", body: `{"subject":{"kind":"user","value":"acme/ u1"},"metric":"m","limit":1}`}, 400, "subject.value", "begin or end with a space"},
	{"scope with a space", request{body: ruleWith(`"metric"`, `"scope":{"service":"demo "},"metric"`)}, 400, "scope.service", "begin or end with a space"},
	{"tab in a subject", request{body: ruleWith(`"value":"*"`, `"value":"ac\tme"`)}, 400, "subject.value", "printable"},
	{"service with a space", request{path: "/v1/services", body: `{"name":"s ","prefix":"/s/","upstreams":[{"url":"http://a"}]}`}, 400, "name", "begin or end with a space"},
	{"control in a service's name", request{path: "/v1/services", body: `{"name":"s\u0085","prefix":"/s/","upstreams":[{"url":"http://a"}]}`}, 400, "name", "printable"},
	{"customer with a space", request{method: "PUT", path: "/v1/customers/acme%20", body: `{"id":"acme ","name":"A"}`, header: map[string]string{"If-None-Match": "*"}}, 400, "id", "begin or end with a space"},
	{"control in a customer's id", request{path: "/v1/customers", body: `{"id":"ac\u001bme","name":"A"}`}, 400, "id", "printable"},
	{"plan with a space", request{path: "/v1/plans", body: strings.Replace(goodPlan, `"pro"`, `" pro"`, 1)}, 400, "id", "begin or end with a space"},
	{"key's tenant with a space", request{path: "/v1/keys", body: `{"tenantId":" acme"}`}, 400, "tenantId", "begin or end with a space"},
	{"key's user with a space", request{path: "/v1/keys", body: `{"tenantId":"acme","userId":"u1 "}`}, 400, "userId", "begin or end with a space"},
	{"key's application of a space", request{path: "/v1/keys", body: `{"tenantId":"acme","applicationId":" "}`}, 400, "applicationId", "begin or end with a space"},
	{"control in a key's user", request{path: "/v1/keys", body: `{"tenantId":"acme","userId":"u\u0007"}`}, 400, "userId", "printable"},

	{"dry run of no value", request{path: "/v1/rules?dryRun", body: goodRule}, 400, "dryRun", "must be true or false"},
	{"dry run of an empty value", request{method: "PUT", path: "/v1/rules/a?dryRun=", body: goodRule, header: anyVersion}, 400, "dryRun", "must be true or false"},
	{"dry run perhaps", request{method: "DELETE", path: "/v1/rules/a?dryRun=perhaps", header: anyVersion}, 400, "dryRun", "must be true or false"},
	{"dry run of a key", request{path: "/v1/keys?dryRun=true", body: `{"tenantId":"acme"}`}, 400, "dryRun", "unknown"},

	{"key without tenant", request{path: "/v1/keys", body: `{}`}, 400, "tenantId", "1 to 128"},
	{"key with a status", request{path: "/v1/keys", body: `{"tenantId":"t","status":"active"}`}, 400, "status", "is not a field"},
	{"key with a hash", request{path: "/v1/keys", body: `{"tenantId":"t","sha256":"00"}`}, 400, "sha256", "is not a field"},
	{"key of the past", request{path: "/v1/keys", body: `{"tenantId":"t","expiresAt":"2001-01-01T00:00:00Z"}`}, 400, "expiresAt", "future"},
	{"key past 9999", request{path: "/v1/keys", body: `{"tenantId":"t","expiresAt":"9999-12-31T23:59:59-23:00"}`}, 400, "expiresAt", "RFC 3339"},
	{"key before 1970", request{path: "/v1/keys", body: `{"tenantId":"t","expiresAt":"1969-12-31T23:59:59Z"}`}, 400, "expiresAt", "years 1970 to 9999"},
	{"key of a tenant/user", request{path: "/v1/keys", body: `{"tenantId":"a/b"}`}, 400, "tenantId", "slash"},
	{"key status", request{method: "PATCH", path: "/v1/keys/k", body: `{"status":"gone"}`, header: anyVersion}, 400, "status", "active, blocked or revoked"},
	{"key tenant patched", request{method: "PATCH", path: "/v1/keys/k", body: `{"tenantId":"b"}`, header: anyVersion}, 400, "tenantId", "is not a field"},
	{"key patched blindly", request{method: "PATCH", path: "/v1/keys/k", body: `{"name":"b"}`}, 428, "-", "If-Match"},
}

func TestBadInputIsRefusedByName(t *testing.T) {
	t.Parallel()
	api := newAPI(t, "")
	for _, c := range badInputs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.is.method == "" {
				c.is.method = "POST"
			}
			if c.is.path == "" {
				c.is.path = "/v1/rules"
			}
			got := c.is.do(t, api)
			p := got.problem(t)
			if got.Code != c.status {
				t.Fatalf("answers %d %s, want %d", got.Code, got.Body, c.status)
			}
			said := p.Detail
			if c.field != "-" {
				if len(p.Errors) == 0 || p.Errors[0].Field != c.field || p.Errors[0].Location == "" {
					t.Fatalf("names %+v, want %q", p.Errors, c.field)
				}
				said = p.Errors[0].Message
			}
			if !strings.Contains(said, c.says) {
				t.Fatalf("says %q, want …%s…", said, c.says)
			}
		})
	}
}

// Mistakes of a body's form and of its meaning are told in one answer.
func TestBadInputIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	s := newAPI(t, "")
	body := `{"id":7,"colour":"red","subject":{"kind":"planet","value":"*"},"metric":"a b","limit":{"algorithm":"quota","limit":"10","period":"fortnight"},"refundOn":["6xx"]}`
	rec := request{method: "POST", path: "/v1/rules", body: body}.do(t, s)
	var fields []string
	for _, e := range rec.problem(t).Errors {
		fields = append(fields, e.Field)
	}
	slices.Sort(fields)
	want := []string{"colour", "id", "limit.limit", "limit.period", "metric", "refundOn[0]", "subject.kind"}
	if rec.Code != http.StatusBadRequest || !slices.Equal(fields, want) {
		t.Errorf("%d names %v, want %v: %s", rec.Code, fields, want, rec.Body)
	}
}
