//go:build integration

package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
)

// a window of a year: no test runs across its edge but at one instant.
const year = `"window":"8760h"`

func TestSixtyFourClientsOnTwoGatewaysPassExactlyAHundred(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{
		"fixedWindow": `{"algorithm":"fixedWindow","limit":100,` + year + `}`,
		"quota":       `{"algorithm":"quota","kind":"renewing","limit":100,"period":"month"}`,
		"gcra":        `{"algorithm":"gcra","limit":1,"window":"24h","burst":100}`, // refills nothing meanwhile
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := onSharedKafka(t)
			addr, prefix := servertest.Redis(t)
			d.putRule(ruleJSON("hundred", "tenant", "calls", limit, ""))
			gateways := []*running{d.runReady("gw-1", addr, prefix, nil), d.runReady("gw-2", addr, prefix, nil)}
			passed, answered := flood(t, gateways, 64, 5)
			if passed != 100 || d.seen.Load() != 100 {
				t.Errorf("%d passed, the upstream saw %d, want 100", passed, d.seen.Load())
			}
			recorded := d.usage(len(answered))
			for id, status := range answered {
				if e, ok := recorded[id]; !ok || e.StatusCode != status {
					t.Errorf("decision %s was answered %d, its event is %+v", id, status, e)
				}
			}
			checkTotals(t, name, recorded)
		})
	}
}

// flood sends requests of one tenant from many clients over all gateways.
func flood(t *testing.T, gateways []*running, clients, each int) (passed int, answered map[string]int) {
	t.Helper()
	var (
		mu  sync.Mutex
		all sync.WaitGroup
	)
	answered = map[string]int{}
	for client := range clients {
		all.Go(func() {
			for i := range each {
				a := do(t, http.MethodGet, gateways[(client+i)%len(gateways)].base+"/demo/x", "X-Tenant-Id", "acme")
				mu.Lock()
				if a.StatusCode == http.StatusOK {
					passed++
				} else if a.StatusCode != http.StatusTooManyRequests {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
				answered[a.Header.Get(respond.HeaderDecisionID)] = a.StatusCode
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(answered) != clients*each {
		t.Errorf("%d ids for %d answers", len(answered), clients*each)
	}
	return passed, answered
}

// checkTotals: the quota's totals are 1 to 100, each once.
func checkTotals(t *testing.T, name string, recorded map[string]usage.Event) {
	t.Helper()
	totals := map[int64]bool{}
	for _, e := range recorded {
		for _, c := range e.Charges {
			totals[c.Consumed] = true
		}
	}
	want := 0
	if name == "quota" {
		want = 100
	}
	if len(totals) != want || (want > 0 && !totals[100]) {
		t.Errorf("%d totals are in the events, want %d", len(totals), want)
	}
}

func TestTenantAndUserAreCountedApartOnRedis(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	d.putRule(ruleJSON("tenant", "tenant", "calls", `{"algorithm":"fixedWindow","limit":3,`+year+`}`, ""))
	d.putRule(ruleJSON("user", "user", "calls", `{"algorithm":"fixedWindow","limit":2,`+year+`}`, ""))
	g := d.runReady("gw", addr, prefix, nil)
	var got []int
	for _, user := range []string{"u1", "u1", "u1", "u2", "u2"} {
		a := do(t, http.MethodGet, g.base+"/demo/x", "X-Tenant-Id", "acme", "X-User-Id", user)
		got = append(got, a.StatusCode)
		parseField(t, a.Header.Values("RateLimit"))
		parseField(t, a.Header.Values("RateLimit-Policy"))
	}
	if want := fmt.Sprint([]int{200, 200, 429, 200, 429}); fmt.Sprint(got) != want {
		t.Errorf("answers %v, want %s", got, want)
	}
}

func TestRedisAwayAndBack(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	server := servertest.StartRedis(t)
	d.put(catalog.Topic, "shut", catalog.Service{Name: "shut", Prefix: "/shut/", Upstreams: []catalog.Upstream{{URL: d.upstream.URL}}})
	d.putRule(`{"id":"open","subject":{"kind":"tenant","value":"*"},"scope":{"service":"demo"},"metric":"a","limit":{"algorithm":"fixedWindow","limit":1000,` + year + `},"onStoreLoss":"open"}`)
	d.putRule(`{"id":"closed","subject":{"kind":"tenant","value":"*"},"scope":{"service":"shut"},"metric":"b","limit":{"algorithm":"fixedWindow","limit":1000,` + year + `},"onStoreLoss":"closed"}`)
	g := d.runReady("gw", server.Addr(), "", func(c *Config) { c.Store.Budget, c.Store.Timeout = 50*time.Millisecond, 200*time.Millisecond })
	ask := func(path string) answer { return do(t, http.MethodGet, g.base+path, "X-Tenant-Id", "acme") }
	whole := func() bool {
		a, b := ask("/demo/x"), ask("/shut/x")
		return a.StatusCode == 200 && a.Header.Get("Sluice-Degraded") == "" && a.Header.Get("RateLimit") != "" && b.StatusCode == 200
	}
	servertest.Eventually(t, patience, "decisions with the store", whole)
	port := server.Port()
	server.Kill()
	for range 20 {
		began := time.Now()
		a, b := ask("/demo/x"), ask("/shut/x")
		if a.StatusCode != 200 || a.Header.Get("Sluice-Degraded") != "store" || a.Header.Get(respond.HeaderDecisionID) == "" {
			t.Fatalf("open: %d %v", a.StatusCode, a.Header)
		}
		if p := b.problem(t); b.StatusCode != 503 || p.Type != reject.ReducedCapacity || b.Header.Get("Retry-After") == "" {
			t.Fatalf("closed: %d %v %s", b.StatusCode, b.Header, b.body)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("two answers without the store took %s", took)
		}
	}
	if err := g.Ready(); err != nil {
		t.Errorf("Redis away makes the gateway unready: %v", err)
	}
	servertest.StartRedisWith(t, redisOnPort(port))
	servertest.Eventually(t, patience, "decisions with the store again", whole)
}

func TestForeignKeyInRedisIsThatRulesMatterAlone(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	d.putRule(ruleJSON("sick", "tenant", "sick", `{"algorithm":"fixedWindow","limit":5,`+year+`}`, `,"onStoreLoss":"open"`))
	d.putRule(ruleJSON("well", "tenant", "well", `{"algorithm":"fixedWindow","limit":2,`+year+`}`, ""))
	g := d.runReady("gw", addr, prefix, nil)
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	ask := func() answer { return do(t, http.MethodGet, g.base+"/demo/x", "X-Tenant-Id", "acme") }
	if a := ask(); a.StatusCode != 200 || a.Header.Get("Sluice-Degraded") != "" {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	found, err := client.Keys(t.Context(), prefix+"*sick*").Result()
	if err != nil || len(found) != 1 {
		t.Fatalf("keys %v, %v", found, err)
	}
	if err := client.Del(t.Context(), found[0]).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.SAdd(t.Context(), found[0], "not a counter").Err(); err != nil {
		t.Fatal(err)
	}
	if a := ask(); a.StatusCode != 200 || a.Header.Get("Sluice-Degraded") != "counter" {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	if a := ask(); a.StatusCode != 429 {
		t.Errorf("the other rule does not hold: %d", a.StatusCode)
	}
}

func TestNotReadyBeforeTheMirrorRecord(t *testing.T) {
	t.Parallel()
	brokers, prefix := servertest.Kafka(t)
	d := newDeployment(t, brokers, prefix)
	addr, keyPrefix := servertest.Redis(t)
	d.put(catalog.Topic, "demo", catalog.Service{Name: "demo", Prefix: "/demo/", Upstreams: []catalog.Upstream{{URL: d.upstream.URL}}})
	d.mirror(keys.Topic)
	d.mirror(grants.Topic)
	d.mirror(overrides.Topic)
	g := d.run("gw", addr, keyPrefix, nil)
	servertest.Eventually(t, patience, "the rules alone to be missing", func() bool {
		err := g.Ready()
		return err != nil && strings.Contains(err.Error(), rules.Topic) && strings.Contains(err.Error(), "mirror") &&
			!strings.Contains(err.Error(), catalog.Topic) && !strings.Contains(err.Error(), keys.Topic)
	})
	a := do(t, http.MethodGet, g.base+"/demo/x")
	if p := a.problem(t); a.StatusCode != 503 || p.Type != reject.ReducedCapacity || a.Header.Get("Retry-After") == "" || d.seen.Load() != 0 {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	d.mirror(rules.Topic)
	servertest.Eventually(t, patience, "the gateway to be ready", func() bool { return g.Ready() == nil })
	if a := do(t, http.MethodGet, g.base+"/demo/x"); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestChangesAreEnforcedAndShown(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	g := d.runReady("gw", addr, prefix, nil)
	status := func(headers ...string) int { return do(t, http.MethodGet, g.base+"/demo/x", headers...).StatusCode }
	until := func(what string, want int, headers ...string) {
		t.Helper()
		servertest.Eventually(t, patience, what, func() bool { return status(headers...) == want })
	}
	d.putRule(ruleJSON("none", "tenant", "m", noQuota, ""))
	until("the rule to be enforced", 403, "X-Tenant-Id", "acme")
	// One that this build cannot read leaves the last good version in force.
	d.put(rules.Topic, "none", map[string]any{"id": "none", "subject": map[string]string{"kind": "tenant", "value": "*"}, "metric": "m", "limit": map[string]any{"algorithm": "of-tomorrow"}})
	servertest.Eventually(t, patience, "the bad record to be told of", func() bool { return len(viewOf(t, g, rules.Topic, "").Bad) == 1 })
	if got := status("X-Tenant-Id", "acme"); got != 403 {
		t.Errorf("after a bad record: %d", got)
	}
	d.remove(rules.Topic, "none")
	until("the rule to be gone", 200, "X-Tenant-Id", "acme")

	d.putKey("slk_integration-secret", keys.Key{ID: "k", TenantID: "acme"})
	until("the key to be known", 200, "X-Api-Key", "slk_integration-secret")
	d.putKey("slk_integration-secret", keys.Key{ID: "k", TenantID: "acme", Status: keys.StatusRevoked})
	until("the key to be revoked", 403, "X-Api-Key", "slk_integration-secret")
	d.remove(keys.Topic, "k")
	until("the key to be gone", 401, "X-Api-Key", "slk_integration-secret")
	if strings.Contains(d.log.String(), "integration-secret") {
		t.Error("a key is in the log")
	}

	view := viewOf(t, g, catalog.Topic, "")
	if !view.Ready || view.Count != 1 || len(view.Entries) != 1 || view.AgeSeconds == nil {
		t.Fatalf("%+v", view)
	}
	e := view.Entries[0]
	if e.Key != "demo" || e.Generation != 1 || e.Version != 1 || e.CommittedAt == 0 || e.RelayedAt < e.CommittedAt || e.AppliedAt < e.RelayedAt {
		t.Errorf("%+v", e)
	}
	if one := viewOf(t, g, catalog.Topic, "?key=nothing"); len(one.Entries) != 0 || one.Count != 1 {
		t.Errorf("%+v", one)
	}
	d.remove(catalog.Topic, "demo")
	until("the service to be gone", 404)
}

func viewOf(t *testing.T, g *running, topic, query string) tableView {
	t.Helper()
	mux := http.NewServeMux()
	g.AdminRoutes(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/tables/"+topic+query, nil))
	var view tableView
	if err := json.Unmarshal(w.Body.Bytes(), &view); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return view
}
