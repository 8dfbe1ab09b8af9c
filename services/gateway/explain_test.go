package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/services/gateway/internal/explain"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

const explainToken = "explain-me"

func (s *stand) explainer() *explain.Explainer {
	s.t.Helper()
	cfg := ExplainConfig{Tokens: []identify.OperatorToken{{Name: "test", SHA256: withHash(explainToken, keys.Key{}).SHA256}}}
	allowed, err := cfg.callers()
	if err != nil {
		s.t.Fatal(err)
	}
	g := s.gate
	return explain.New(explain.Options{
		Index: s.index, Ready: g.tables, Unread: func() []string { return nil },
		Key:     func(id string) (*identify.Key, bool) { k := s.keyRecords[id]; return k, k != nil },
		Service: func(name string) (*routing.Service, bool) { v := s.services[name]; return v, v != nil },
		Routes:  g.routes, Admission: &g.admission, Counter: g.counter, Store: g.charger.Store,
		Operators: allowed, Now: g.now, Log: g.log,
	})
}

// ask asks through HTTP, as the admin port serves it.
func (s *stand) ask(token, body string) (int, string) {
	s.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/explain", strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.explainer().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (s *stand) explained(body string) explain.Explanation {
	s.t.Helper()
	status, text := s.ask(explainToken, body)
	var out explain.Explanation
	if err := json.Unmarshal([]byte(text), &out); status != http.StatusOK || err != nil {
		s.t.Fatalf("%d %s: %v", status, text, err)
	}
	return out
}

func (s *stand) putOverride(text string) {
	s.t.Helper()
	var o overrides.Override
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		s.t.Fatal(err)
	}
	c, err := rule.CompileOverride(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.index.PutOverride(c)
}

func TestExplainSaysWhyAndChargesNothing(t *testing.T) {
	t.Parallel()
	cost := int64(3)
	s := newStand(t, standOptions{trusted: []string{loopback}, catalog: []catalog.Service{
		{Name: "demo", Prefix: "/demo/", Endpoints: []catalog.Endpoint{{Pattern: "GET /demo/pay/{id}", Cost: &cost}}},
	}})
	const minute = `"metric":"m","limit":{"algorithm":"fixedWindow","limit":10,"window":"1m"}`
	s.putRule(`{"id":"all","subject":{"kind":"tenant","value":"*"},` + minute + `}`)
	s.putRule(`{"id":"pay","subject":{"kind":"tenant","value":"*"},"scope":{"service":"demo","endpoint":"GET /demo/pay/{id}"},` + minute + `}`)
	s.putRule(`{"id":"other","subject":{"kind":"tenant","value":"*"},"scope":{"service":"demo","endpoint":"GET /demo/x"},` + minute + `}`)
	s.putRule(`{"id":"off","mode":"off","subject":{"kind":"tenant","value":"acme"},` + minute + `}`)
	s.putRule(`{"id":"past","validUntil":"2026-01-01T00:00:00Z","subject":{"kind":"tenant","value":"acme"},` + minute + `}`)
	s.putRule(`{"id":"later","validFrom":"2027-01-01T00:00:00Z","subject":{"kind":"tenant","value":"acme"},` + minute + `}`)
	s.putRule(`{"id":"users","subject":{"kind":"user","value":"*"},` + minute + `}`)
	s.putRule(`{"id":"globex","subject":{"kind":"tenant","value":"globex"},` + minute + `}`)
	s.putRule(`{"id":"trial","mode":"shadow","subject":{"kind":"tenant","value":"acme"},"metric":"m","limit":{"algorithm":"gcra","limit":1,"window":"2m"}}`)
	s.putOverride(`{"subject":{"kind":"tenant","value":"acme"},"metric":"m","window":"1m","limit":7}`)

	out := s.explained(`{"tenantId":"acme","path":"//demo/./pay/%37?of=x"}`)
	if r := out.Request; r.Path != "/demo/pay/7" || r.Service != "demo" || r.Endpoint != "GET /demo/pay/{id}" || r.Cost != 3 {
		t.Errorf("asked of %+v", r)
	}
	got := map[string]string{}
	for _, r := range out.Rules {
		got[r.ID] = strings.TrimSpace(r.Result + " " + r.By + " " + r.Because)
	}
	want := map[string]string{
		"pay": "won", "trial": "won", "all": "lost pay narrower scope", "other": "other-pattern", "off": "off",
		"past": "expired", "later": "not-yet-valid", "users": "identity-missing",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rules\n%v, want\n%v", got, want)
	}
	if len(out.Winners) != 2 || !*out.WouldPass {
		t.Fatalf("%+v", out)
	}
	w := out.Winners[0]
	if w.ID != "pay" || w.Override != "tenant:acme:m:1m" || w.Limit != 7 || *w.Remaining != 7 || !strings.HasPrefix(w.Counter, "{t:acme}:t::m:fixed:60") || !*w.WouldPass {
		t.Errorf("winner %+v", w)
	}
	if w := out.Winners[1]; w.ID != "trial" || w.Mode != "shadow" || *w.WouldPass {
		t.Errorf("a shadow winner that would not pass: %+v", w)
	}

	// Twice pass, then one is denied, as the explain.Explanation says; asking changes nothing.
	for i, status := range []int{200, 200, 429} {
		before := s.explained(`{"tenantId":"acme","path":"/demo/pay/7"}`)
		if *before.WouldPass != (status == 200) || *before.Winners[0].Remaining != int64(7-3*i) {
			t.Errorf("before request %d: %+v", i, before.Winners[0])
		}
		if a := s.get("/demo/pay/7", "X-Tenant-Id", "acme"); a.StatusCode != status {
			t.Errorf("request %d: %d", i, a.StatusCode)
		}
	}
}

func TestExplainTakesTheKeysIdentity(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{})
	s.putRule(`{"id":"q","subject":{"kind":"user","value":"acme/*"},"onMissing":"deny","metric":"m","limit":{"algorithm":"quota","kind":"renewing","limit":10,"period":"month"}}`)
	s.putKey("slk_1", keys.Key{ID: "k1", TenantID: "acme", UserID: "u1"})
	s.putKey("slk_2", keys.Key{ID: "k2", TenantID: "acme", Status: keys.StatusRevoked})
	out := s.explained(`{"apiKeyId":"k1","tenantId":"globex","service":"demo"}`)
	if r := out.Request; r.TenantID != "acme" || r.UserID != "u1" || len(out.Winners) != 1 || out.Winners[0].Counter != "{t:acme}:u:u1:m:quota:month:202607" {
		t.Errorf("%+v", out)
	}
	denied := s.explained(`{"tenantId":"acme","path":"/demo/x"}`)
	if *denied.WouldPass || !denied.Winners[0].IdentityMissing {
		t.Errorf("%+v", denied)
	}
	for body, says := range map[string]string{
		`{"apiKeyId":"k2","path":"/demo/x"}`:           "revoked",
		`{"apiKeyId":"nobody's","path":"/demo/"}`:      "no key",
		`{"tenantId":"acme"}`:                          "give path",
		`{"service":"nowhere"}`:                        "give path",
		`{"path":"/nowhere"}`:                          "no service's prefix",
		`{"path":"/x/../.%73luice/v1/reservations"}`:   "path: /.sluice/v1/reservations is the gate's own",
		`{"path":"demo"}`:                              "path: must begin with a slash",
		`{"path":"/demo/x","service":"demo"}`:          "service: must be left out",
		`{"path":"/demo/x","cost":-1}`:                 "cost: must be a whole number of units from 0 to 2^53",
		`{"path":"/demo/x","cost":9007199254740993}`:   "cost: must be",
		`{"path":"/demo/x","method":"G T"}`:            "method: must be a method of HTTP",
		`{"path":"/demo/x","method":"CONNECT"}`:        "method: must not be CONNECT",
		`{"path":"/demo/x","method":"get"}`:            "method: must be written GET",
		`{"path":"/demo/x","userId":"a\tb"}`:           "userId: must be plain UTF-8",
		`{"path":"/x","byToken":true,"apiKeyId":"k1"}`: "byToken: must not be together",
		`{"path":"/demo/x","method":"","cost":-1,"tenantId":"` + strings.Repeat("a", 257) + `"}`: "tenantId: must have at most 256 bytes; cost: must be",
		`{"path":"/demo/x","colour":"red"}`: "colour",
		`{`:                                 "JSON",
	} {
		if status, text := s.ask(explainToken, body); status != http.StatusBadRequest || !strings.Contains(text, says) {
			t.Errorf("%s: %d %s, want 400 with %q", body, status, text, says)
		}
	}
}

// What a service demands of those who come in is foretold as well.
func TestExplainForetellsWhoIsLetIn(t *testing.T) {
	t.Parallel()
	login := newIssuer(t, loginIssuer)
	s := newStand(t, standOptions{
		trusted: []string{loopback}, tokens: fetched(t, startVerifier(t, login)),
		catalog: []catalog.Service{
			{Name: "open", Prefix: "/open/"}, {Name: "key", Prefix: "/key/", RequireKey: true},
			{Name: "token", Prefix: "/token/", RequireIdentity: catalog.RequireToken}, {Name: "either", Prefix: "/either/", RequireIdentity: catalog.RequireKeyOrToken},
			{Name: "shut", Prefix: "/shut/", Upstreams: []catalog.Upstream{{URL: "http://127.0.0.1:1", Weight: new(0)}}},
		},
	})
	s.putKey(secret, keys.Key{ID: "k1", TenantID: "acme"})
	asked := map[string][]string{
		`"tenantId":"acme"`:                {"X-Tenant-Id", "acme"},
		`"tenantId":"acme","byToken":true`: {"Authorization", "Bearer " + login.token(t, nil)},
		`"apiKeyId":"k1"`:                  {"X-Api-Key", secret},
	}
	for _, service := range []string{"open", "key", "token", "either", "shut"} {
		for who, headers := range asked {
			out := s.explained(`{"path":"/` + service + `/x",` + who + `}`)
			a := s.get("/"+service+"/x", headers...)
			if *out.WouldPass != (a.StatusCode == http.StatusOK) || (out.Refused == nil) != *out.WouldPass {
				t.Errorf("%s, %s: %+v, answered %d", service, who, out, a.StatusCode)
			}
			if out.Refused != nil && (out.Refused.Status != a.StatusCode || out.Refused.Title != a.problem(t).Title || out.Refused.Detail != a.problem(t).Detail) {
				t.Errorf("%s, %s: %+v, answered %d %s", service, who, out.Refused, a.StatusCode, a.body)
			}
			if want := map[string]string{"key": "key", "token": "token", "either": "keyOrToken"}[service]; out.Request.Demands != want {
				t.Errorf("%s demands %q", service, out.Request.Demands)
			}
		}
	}
}

// What is left is of the burst, or of the limit with what was carried over;
// whether stored answers are charged is said where there may be any.
func TestExplainSaysWhatIsLeftOfWhat(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{catalog: []catalog.Service{{
		Name: "demo", Prefix: "/demo/", Cache: &catalog.Cache{TTL: "1m"},
		Endpoints: []catalog.Endpoint{{Pattern: "/demo/off", Cache: &catalog.Cache{Enabled: new(false)}}},
	}}})
	s.putRule(`{"id":"a","countCached":false,"subject":{"kind":"tenant","value":"*"},"metric":"m","limit":{"algorithm":"gcra","limit":30,"window":"1m","burst":50}}`)
	s.putRule(`{"id":"b","subject":{"kind":"tenant","value":"*"},"metric":"r","limit":{"algorithm":"quota","kind":"renewing","limit":100,"period":"month","rollover":20}}`)
	out := s.explained(`{"tenantId":"acme","path":"/demo/a"}`)
	a, b := out.Winners[0], out.Winners[1]
	if a.Limit != 30 || a.Burst != 50 || *a.Remaining != 50 || a.CountCached == nil || *a.CountCached {
		t.Errorf("a rested burst: %+v", a)
	}
	if b.Limit != *b.Remaining || b.Limit != 100+b.Carried || b.CountCached != nil {
		t.Errorf("a quota: %+v", b)
	}
	for question, cached := range map[string]bool{
		`"path":"/demo/a"`: true, `"service":"demo"`: true, `"path":"/demo/a","method":"HEAD"`: true,
		`"path":"/demo/a","method":"POST"`: false, `"path":"/demo/off"`: false,
	} {
		if got := s.explained(`{"tenantId":"acme",` + question + `}`).Request.Cached; got != cached {
			t.Errorf("%s: cached %t", question, got)
		}
	}
}

// A cost above maxCost is judged by the counters where a trusted peer names it,
// and nowhere else.
func TestExplainSaysWhatBecomesOfACostAboveMaxCost(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}})
	s.putService(catalog.Service{Name: "bounded", Prefix: "/bounded/", MaxCost: new(int64(10_000))})
	s.putService(catalog.Service{Name: "named", Prefix: "/named/", MaxCost: new(int64(10_000)), CostHeader: "X-Cost"})
	s.putService(catalog.Service{Name: "dear", Prefix: "/dear/", MaxCost: new(int64(10)), Endpoints: []catalog.Endpoint{{Pattern: "/dear/x", Cost: new(int64(20))}}})
	if out := s.explained(`{"tenantId":"acme","path":"/dear/x"}`); out.Request.Cost != 20 || out.Note != "" {
		t.Errorf("of the catalog's own cost, %d, it notes %q", out.Request.Cost, out.Note)
	}
	s.putRule(`{"id":"r","subject":{"kind":"tenant","value":"acme"},"metric":"m","limit":{"algorithm":"quota","kind":"renewing","limit":11000,"period":"day"}}`)
	for _, name := range []string{"bounded", "named"} {
		ask := func(cost int) explain.Explanation {
			return s.explained(fmt.Sprintf(`{"tenantId":"acme","path":"/%s/x","cost":%d}`, name, cost))
		}
		if out := ask(10_000); out.Note != "" || !*out.WouldPass {
			t.Errorf("%s: at maxCost it notes %q", name, out.Note)
		}
		out := ask(12_000)
		if !strings.Contains(out.Note, "above maxCost 10000 of service "+name) || strings.Contains(out.Note, "changes nothing") != (name == "named") {
			t.Errorf("%s: notes %q", name, out.Note)
		}
		if a := s.get("/"+name+"/x", "X-Tenant-Id", "acme", identify.HeaderCost, "12000"); a.StatusCode != out.Status {
			t.Errorf("%s: foretells %d, and answers %d", name, out.Status, a.StatusCode)
		}
	}
}

func TestExplainIsForTokensOnly(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{})
	for _, token := range []string{"", "wrong", explainToken + "x"} {
		if status, _ := s.ask(token, `{"path":"/demo/x"}`); status != http.StatusUnauthorized {
			t.Errorf("token %q: %d", token, status)
		}
	}
	if _, err := (&ExplainConfig{Tokens: []identify.OperatorToken{{Name: "x", SHA256: "abc"}}}).callers(); err == nil || !strings.Contains(err.Error(), "64 hexadecimal") {
		t.Errorf("%v", err)
	}
}

func TestExplainSaysThatCountersAreAway(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{})
	s.use(nil).down = limit.ErrUnavailable
	s.putRule(`{"id":"r","subject":{"kind":"tenant","value":"*"},"metric":"m","limit":{"algorithm":"gcra","limit":1,"window":"1m"}}`)
	out := s.explained(`{"tenantId":"acme","path":"/demo/x"}`)
	if out.WouldPass != nil || out.Trouble == "" || out.Winners[0].WouldPass != nil || out.Winners[0].Counter != "{t:acme}:t::m:gcra:60" {
		t.Errorf("%+v", out)
	}
}

// What is explained to pass passes, and what not is denied, with the status and
// the Retry-After that were foretold.
func TestExplainForetells(t *testing.T) {
	t.Parallel()
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		var clock atomic.Int64 // µs
		clock.Store(noon.UnixMicro())
		s := newStand(t, standOptions{trusted: []string{loopback}, now: func() time.Time { return time.UnixMicro(clock.Load()).UTC() }})
		s.holdForetold(t, "/demo/x", func(d time.Duration) { clock.Add(d.Microseconds()) })
	})
	t.Run("script", func(t *testing.T) {
		t.Parallel()
		r := newReserving(t, 1)
		r.gates[0].holdForetold(t, "/llm/x", r.wait)
	})
}

func (s *stand) holdForetold(t *testing.T, path string, pause func(time.Duration)) {
	algorithms := []string{
		`{"algorithm":"fixedWindow","limit":%d,"window":"1m"}`, `{"algorithm":"slidingWindow","limit":%d,"window":"1h"}`,
		`{"algorithm":"gcra","limit":%d,"window":"1h"}`, `{"algorithm":"tokenBucket","limit":%d,"window":"1h"}`,
		`{"algorithm":"quota","kind":"renewing","limit":%d,"period":"day"}`, `{"algorithm":"quota","kind":"renewing","limit":%d,"period":"never"}`,
		`{"algorithm":"quota","kind":"renewing","limit":%d,"period":"week","overdraft":"once"}`,
	}
	run, waits := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		tenant, buckets := fmt.Sprintf("t%d", run), int64(0)
		for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
			l := fmt.Sprintf(rapid.SampledFrom(algorithms).Draw(t, "algorithm"), rapid.IntRange(0, 12).Draw(t, "limit"))
			if strings.Contains(l, "gcra") || strings.Contains(l, "Bucket") {
				buckets = 1 // told a microsecond late at most, which may be one second more
			}
			s.putRule(fmt.Sprintf(`{"id":"r%d","subject":{"kind":"tenant","value":"%s"},"metric":"m%d","cost":%d,"limit":%s}`, i, tenant, i, rapid.IntRange(0, 5).Draw(t, "cost"), l))
		}
		for range 6 {
			out := s.explained(fmt.Sprintf(`{"tenantId":"%s","path":"%s"}`, tenant, path))
			a := s.get(path, "X-Tenant-Id", tenant)
			if *out.WouldPass != (a.StatusCode == http.StatusOK) || !*out.WouldPass && out.Status != a.StatusCode || *out.WouldPass && out.Status != 0 {
				t.Fatalf("foretold to pass: %t, status %d; answered %d %s", *out.WouldPass, out.Status, a.StatusCode, a.body)
			}
			wait, _ := strconv.ParseInt(a.Header.Get("Retry-After"), 10, 64) // 0 where there is none
			if out.RetryAfter < wait || out.RetryAfter > wait+buckets || (out.RetryAfter == 0) != (wait == 0) {
				t.Fatalf("foretold to wait %d s, answered %d: %+v", out.RetryAfter, wait, out.Winners)
			}
			if waits += int(min(wait, 1)); rapid.Bool().Draw(t, "pause") {
				pause(time.Duration(rapid.Int64Range(1, int64(40*time.Minute/time.Microsecond)).Draw(t, "µs")) * time.Microsecond)
			}
		}
	})
	if waits == 0 {
		t.Error("nobody had to wait")
	}
}
