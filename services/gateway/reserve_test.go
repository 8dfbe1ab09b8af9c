package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore/restoretest"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
)

// reserving is some gates on one Redis whose clock the test moves.
type reserving struct {
	t      *testing.T
	server *miniredis.Miniredis
	client redis.UniversalClient
	gates  []*stand

	mu  sync.Mutex
	now time.Time
}

func newReserving(t *testing.T, gates int) *reserving {
	t.Helper()
	return newReservingOf(t, gates, 0)
}

// newReservingOf lets a tenant have so many open; 0 is the default.
func newReservingOf(t *testing.T, gates, maxOpen int) *reserving {
	t.Helper()
	r := &reserving{t: t, server: miniredis.RunT(t), now: noon}
	r.server.SetTime(noon)
	const patient = 10 * time.Second
	o := &redis.UniversalOptions{Addrs: []string{r.server.Addr()}}
	redisstore.Configure(o, patient)
	r.client = redis.NewUniversalClient(o)
	t.Cleanup(func() { _ = r.client.Close() })
	restoretest.Whole(t, r.client, "")
	for range gates {
		store, err := redisstore.New(r.client, redisstore.Options{Budget: patient, Now: r.clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		s := newStand(t, standOptions{store: store, now: r.clock, trusted: []string{loopback}, catalog: []catalog.Service{
			{Name: "llm", Prefix: "/llm/", MaxCost: new(int64(100)), Endpoints: []catalog.Endpoint{{Pattern: "POST /llm/v1/chat"}}},
			{Name: "closed", Prefix: "/closed/", RequireKey: true},
		}})
		if s.gate.book, err = reserve.New(reserve.Options{Store: store, Client: r.client, Tell: s.gate.tellReservation, MaxOpen: maxOpen}); err != nil {
			t.Fatal(err)
		}
		r.gates = append(r.gates, s)
	}
	return r
}

func (r *reserving) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *reserving) wait(d time.Duration) {
	r.mu.Lock()
	r.now = r.now.Add(d)
	r.server.SetTime(r.now)
	r.mu.Unlock()
	r.server.FastForward(d)
}

func (r *reserving) putRule(text string) {
	r.t.Helper()
	for _, s := range r.gates {
		s.putRule(text)
	}
}

const (
	tokensQuota = `{"id":"tokens","subject":{"kind":"tenant","value":"*"},"scope":{"service":"llm"},"metric":"tokens","limit":{"algorithm":"quota","kind":"renewing","limit":1000,"period":"month"}}`
	callsRate   = `{"id":"calls","subject":{"kind":"tenant","value":"*"},"scope":{"service":"llm"},"metric":"calls","limit":{"algorithm":"fixedWindow","limit":100,"window":"1h"},"cost":1}`
)

// send asks a gate of its own paths, as tenant acme unless a header says otherwise.
func (r *reserving) send(gate int, method, path, body string, headers ...string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.gates[gate].front.URL+reservationsPath+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Tenant-Id", "acme")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{Response: res, body: string(text)}
}

// reserved is what a reservation's own answer says.
type reserved struct {
	ID, State, Service, Endpoint, Method string
	Metrics                              []string
	Reserved                             int64
	Committed                            *int64
	ReservedAt, ExpiresAt, EndedAt       time.Time
}

// is asserts the status of an answer and returns what it says.
func (a answer) is(t testing.TB, status int) (r reserved) {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("answered %d, want %d: %s", a.StatusCode, status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &r); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return r
}

func chat(id string, cost int) string {
	return fmt.Sprintf(`{"id":%q,"service":"llm","path":"/llm/v1/chat","cost":%d,"ttl":"60s"}`, id, cost)
}

// used is what acme used of the quota.
func (r *reserving) used(counter string) int64 {
	r.t.Helper()
	all, err := redisstore.ReadTotals(r.t.Context(), r.client, "", []string{counter})
	if err != nil {
		r.t.Fatal(err)
	}
	return all[0].Consumed - all[0].Refunded
}

const tokensCounter = "{t:acme}:t::tokens:quota:month:202607"

// told sums up the events of all gates, each id once.
func (r *reserving) told() (byID map[string]usage.Event, units map[string]int64) {
	byID, units = map[string]usage.Event{}, map[string]int64{}
	for _, s := range r.gates {
		for _, e := range s.events() {
			byID[e.ID] = e
		}
	}
	for _, e := range byID {
		for _, c := range e.Charges {
			units[c.Counter] += c.Amount
		}
	}
	return byID, units
}

func TestReserveThenCommit(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 2)
	r.putRule(tokensQuota)
	r.putRule(callsRate)
	a := r.send(0, "POST", "", chat("job-1", 90), "X-User-Id", "u1")
	got := a.is(t, http.StatusCreated)
	if got.State != "reserved" || got.Reserved != 90 || got.Endpoint != "/llm/v1/chat" || got.Method != "POST" || strings.Join(got.Metrics, ",") != "calls,tokens" || got.ExpiresAt != noon.Add(time.Minute) || got.Committed != nil {
		t.Errorf("%+v", got)
	}
	if a.Header.Get("Location") != reservationsPath+"/job-1" || a.Header.Get("Ratelimit") != `"calls";r=99;t=3600, "tokens";r=910;t=1425600` {
		t.Errorf("%v", a.Header)
	}
	e := r.gates[0].event()
	if e.ID != a.Header.Get(respond.HeaderDecisionID) || e.Decision != usage.DecisionAllow || e.Reservation != "job-1" || e.StatusCode != 201 ||
		e.Cost != 90 || e.UserID != "u1" || !e.TS.Equal(noon) || len(e.Charges) != 1 || e.Charges[0].Amount != 90 || e.Charges[0].Consumed != 90 {
		t.Errorf("%+v", e)
	}
	if len(r.gates[0].requests()) != 0 {
		t.Error("something was forwarded")
	}
	r.wait(time.Second)
	done := r.send(1, "POST", "/job-1/commit", `{"cost":40}`, "X-User-Id", "u1")
	if got := done.is(t, http.StatusOK); got.State != "committed" || *got.Committed != 40 || got.EndedAt != noon.Add(time.Second) {
		t.Errorf("%+v", got)
	}
	e = r.gates[1].event()
	if e.Decision != usage.DecisionCommit || e.Cost != 40 || e.UserID != "u1" || e.Reservation != "job-1" || e.Endpoint != "/llm/v1/chat" ||
		len(e.Charges) != 1 || e.Charges[0].Amount != -50 || e.Charges[0].Consumed != 90 || e.Charges[0].Refunded != 50 || e.Charges[0].Counter != tokensCounter {
		t.Errorf("%+v", e)
	}
	if n := r.used(tokensCounter); n != 40 {
		t.Errorf("%d used", n)
	}
	// The rule's own cost stays.
	again := r.send(0, "POST", "", chat("job-2", 1))
	if again.is(t, 201); !strings.HasPrefix(again.Header.Get("Ratelimit"), `"calls";r=98`) {
		t.Errorf("%v", again.Header)
	}
	if got := r.send(1, "GET", "/job-1", "", "X-User-Id", "u1").is(t, 200); got.State != "committed" || *got.Committed != 40 {
		t.Errorf("%+v", got)
	}
}

// Who asks for what twice is told what there is; nobody else's is there.
func TestReservationAnswers(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 2)
	r.putRule(tokensQuota)
	for _, id := range []string{"open", "committed", "released", "deleted", "expired"} {
		r.send(0, "POST", "", chat(id, 10)).is(t, 201)
	}
	r.send(1, "POST", "/committed/commit", `{"cost":7}`).is(t, 200)
	r.send(1, "POST", "/released/release", "").is(t, 200)
	r.send(1, "DELETE", "/deleted", "").is(t, 200)
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
		says               string
	}{
		{"POST", "", chat("open", 10), nil, 201, `"state":"reserved"`},
		{"POST", "", chat("open", 11), nil, 422, "another body"},
		{"POST", "", chat("open", 10), []string{"X-User-Id", "u2"}, 422, "another user or application"},
		{"POST", "", chat("open", 10), []string{"X-Application-Id", "a2"}, 422, "another user or application"},
		{"POST", "", chat("committed", 10), nil, 409, "committed at a cost of 7 at 2026-07-15T12:00:00Z"},
		{"POST", "/committed/commit", `{"cost":7}`, nil, 200, `"committed":7`},
		{"POST", "/committed/commit", `{"cost":8}`, nil, 409, "committed at a cost of 7"},
		{"POST", "/committed/release", "", nil, 409, "committed at a cost of 7"},
		{"POST", "/released/release", "", nil, 200, `"state":"released"`},
		{"POST", "/released/commit", `{"cost":0}`, nil, 409, "was released at"},
		{"DELETE", "/deleted", "", nil, 200, `"state":"released"`},
		{"GET", "/open", "", nil, 200, `"state":"reserved"`},
		{"GET", "/open", "", []string{"X-Tenant-Id", "globex"}, 404, "no reservation open"},
		{"POST", "/open/commit", `{"cost":1}`, []string{"X-Tenant-Id", "globex"}, 404, "no reservation open"},
		{"DELETE", "/open", "", []string{"X-Tenant-Id", "globex"}, 404, "no reservation open"},
		{"GET", "/none", "", nil, 404, "no reservation none"},
		{"GET", "/open", "", []string{"X-Tenant-Id", ""}, 401, "belongs to a tenant"},
		{"POST", "", chat("x", 1), []string{"X-Tenant-Id", ""}, 401, "belongs to a tenant"},
		{"POST", "", `{"path":"/closed/x","cost":1}`, nil, 401, "API key required"},
		{"PUT", "", "", nil, 405, "takes POST"},
		{"PUT", "/open", "", nil, 405, "takes GET, HEAD, DELETE"},
		{"GET", "/open/commit", "", nil, 405, "takes POST"},
		{"GET", "/", "", nil, 404, "nothing at this path"},
		{"GET", "/open/", "", nil, 404, "nothing at this path"},
		{"POST", "/open/other", "", nil, 404, "nothing at this path"},
		{"GET", "/a%2Fb", "", nil, 404, "nothing at this path"},
		{"GET", "x", "", nil, 404, "nothing at this path"},
	} {
		a := r.send(0, c.method, c.path, c.body, c.headers...)
		if a.StatusCode != c.status || !strings.Contains(a.body, c.says) {
			t.Errorf("%s %s %s: %d %s, want %d %s", c.method, c.path, c.body, a.StatusCode, a.body, c.status, c.says)
		}
		if a.StatusCode >= 400 {
			a.problem(t)
		}
	}
	if a := r.send(0, "HEAD", "/open", ""); a.StatusCode != 200 || a.body != "" {
		t.Errorf("HEAD: %d %s", a.StatusCode, a.body)
	}
	if a := r.send(0, "PUT", "/open", ""); a.Header.Get("Allow") != "GET, HEAD, DELETE" {
		t.Errorf("Allow: %s", a.Header.Get("Allow"))
	}
	r.wait(time.Minute)
	r.gates[1].gate.sweep(t.Context())
	if a := r.send(0, "POST", "/expired/commit", `{"cost":1}`); a.StatusCode != 409 || !strings.Contains(a.body, "expired expired at 2026-07-15T12:01:00Z") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if n := r.used(tokensCounter); n != 7 {
		t.Errorf("%d used", n)
	}
	if byID, units := r.told(); len(byID) != 10 || units[tokensCounter] != 7 {
		t.Errorf("%d events, %v", len(byID), units)
	}
}

func TestBadWishesAreRefusedByName(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 1)
	r.putRule(tokensQuota)
	for body, wants := range map[string][]string{
		``: {"JSON object"}, `[]`: {"must be an object"}, `{"cost":1}`: {"path: must be there"}, `{"path":"/llm/x"}`: {"cost: must be there"},
		`{"path":"/llm/x","cost":0}`: {"cost: must be a whole number of units from 1 to 100, the service's maxCost"}, `{"path":"/llm/x","cost":-1}`: {"cost: "},
		`{"path":"/llm/x","cost":101}`: {"from 1 to 100"}, `{"path":"/llm/x","cost":1.5}`: {"cost: "}, `{"path":"/llm/x","cost":1e3}`: {"cost: "},
		`{"path":"/llm/x","cost":99999999999999999999}`: {"cost: "}, `{"path":"/llm/x","cost":"5"}`: {"cost: "}, `{"path":"/llm/x","cost":null}`: {"cost: "},
		`{"path":"/llm/x","cost":9007199254740992}`: {"cost: "}, `{"path":"/llm/x","cost":5,"extra":1}`: {"extra: is not a field here"},
		`{"path":"/llm/x","cost":5,"cost":6}`: {"cost: appears twice"}, `{"path":"/none/x","cost":5}`: {"path: must be below a service's prefix"},
		`{"path":"llm","cost":5}`: {"path: must be a path"}, `{"path":"/llm/x?a=b","cost":5}`: {"path: must be a path"},
		`{"path":"/.sluice/v1/reservations","cost":5}`: {"the gate's own"}, `{"path":"/llm/../.sluice/x","cost":5}`: {"the gate's own"},
		`{"path":"/llm/x","cost":5,"service":"demo"}`: {"service: must be llm"}, `{"path":"/llm/x","cost":5,"method":"GO AWAY"}`: {"method: "},
		`{"path":"/llm/x","cost":5,"method":"CONNECT"}`: {"method: "}, `{"path":"/llm/x","cost":5,"ttl":"999ms"}`: {"ttl: must be a duration from 1s to 24h"},
		`{"path":"/llm/x","cost":5,"ttl":"25h"}`: {"ttl: "}, `{"path":"/llm/x","cost":5,"ttl":"-1s"}`: {"ttl: "}, `{"path":"/llm/x","cost":5,"ttl":"60"}`: {"ttl: "},
		`{"path":"/llm/x","cost":5,"ttl":60}`: {"ttl: "}, `{"path":"/llm/x","cost":5,"id":"a b"}`: {"id: must be 1 to 128"}, `{"path":"/llm/x","cost":5,"id":"a|b"}`: {"id: "},
		`{"path":"/llm/x","cost":5,"id":"` + strings.Repeat("a", 129) + `"}`:         {"id: "},
		`{"path":"/llm/x","cost":5,"id":"é"}`:                                        {"id: "},
		`{"path":"/llm/x","cost":5,"id":"."}`:                                        {"id: "},
		`{"path":"/llm/x","cost":5,"id":".."}`:                                       {"id: "},
		`{"path":"/none/x","cost":0,"id":"a b","ttl":"x","method":"a b"}`:            {"path: ", "cost: ", "id: ", "ttl: ", "method: "},
		`{"path":"/llm/x","cost":5} {}`:                                              {""},
		`{"path":"` + strings.Repeat("/llm/", 4000) + `","cost":5}`:                  {"more than 16384 bytes"},
		`{"path":"/llm/x","cost":5,"id":"` + string([]byte{0xff, 0xfe}) + `"}`:       {"UTF-8"},
		`{"tenantId":"globex","path":"/llm/x","cost":5}`:                             {"tenantId: is not a field here"},
		`{"path":"/llm/x","cost":5,"ttl":"60s","service":"llm","method":"GET",}`:     {""},
		`{"path":"/llm/%zz","cost":5}`:                                               {"path: "},
		`{"path":"/llm/x","cost":5,"ttl":"9999999999999999h"}`:                       {"ttl: "},
		`{"id":{"a":1},"path":["/llm/x"],"cost":{},"service":7,"method":null,"x":0}`: {"id: ", "path: ", "cost: ", "service: "},
	} {
		a := r.send(0, "POST", "", body)
		p := a.problem(t)
		if a.StatusCode != 400 {
			t.Errorf("%.80s: %d %s", body, a.StatusCode, a.body)
		}
		for _, want := range wants {
			if !strings.Contains(p.Detail, want) {
				t.Errorf("%.80s: %q lacks %q", body, p.Detail, want)
			}
		}
	}
	r.send(0, "POST", "", chat("a", 10)).is(t, 201)
	for body, want := range map[string]string{
		``: "JSON object", `{}`: "cost: must be there", `{"cost":-1}`: "cost: must be a whole number of units from 0", `{"cost":1.5}`: "cost: ", `{"cost":101}`: "cost: must be at most 100, the service's maxCost",
		`{"cost":9007199254740993}`: "cost: ", `{"units":5}`: "units: is not a field here",
	} {
		if a := r.send(0, "POST", "/a/commit", body); a.StatusCode != 400 || !strings.Contains(a.problem(t).Detail, want) {
			t.Errorf("commit %s: %d %s", body, a.StatusCode, a.body)
		}
	}
	if n := r.used(tokensCounter); n != 10 {
		t.Errorf("%d used, want what is reserved alone", n)
	}
	if got := len(r.gates[0].events()); got != 1 {
		t.Errorf("%d events", got)
	}
}

// What is denied is denied as a request is, and leaves nothing behind.
func TestReservationIsDenied(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 1)
	r.putRule(tokensQuota)
	r.putRule(strings.ReplaceAll(strings.ReplaceAll(tokensQuota, `"tokens"`, `"words"`), "1000", "50"))
	a := r.send(0, "POST", "", chat("a", 60))
	if p := a.problem(t); a.StatusCode != 429 || p.Type != reject.QuotaExceeded || !slices.Equal(p.Violated, []string{"words"}) ||
		!strings.Contains(a.Header.Get("Ratelimit"), `"tokens";r=1000`) || p.DecisionID != a.Header.Get(respond.HeaderDecisionID) {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	if e := r.gates[0].event(); e.Decision != usage.DecisionDeny || e.StatusCode != 429 || e.RuleID != "words" || e.Reservation != "a" || len(e.Charges) != 0 {
		t.Errorf("%+v", e)
	}
	if got := r.send(0, "GET", "/a", ""); got.StatusCode != 404 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	r.putRule(`{"id":"none","subject":{"kind":"tenant","value":"*"},"scope":{"service":"llm"},"metric":"none","limit":{"algorithm":"quota","kind":"renewing","limit":0,"period":"month"}}`)
	if a := r.send(0, "POST", "", chat("b", 1)); a.StatusCode != 403 || a.problem(t).Type != reject.NotEntitled {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	r.putRule(`{"id":"user","subject":{"kind":"user","value":"*"},"scope":{"service":"llm"},"metric":"u","limit":{"algorithm":"gcra","limit":9,"window":"1m"},"onMissing":"deny"}`)
	if a := r.send(0, "POST", "", chat("c", 1)); a.StatusCode != 403 || a.problem(t).Type != reject.IdentityMissing {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for _, key := range r.server.Keys() {
		if strings.Contains(key, "reserv") {
			t.Errorf("%s is left", key)
		}
	}
}

// A reservation needs its counters, whatever onStoreLoss says.
func TestNothingIsReservedWithoutTheStore(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 1)
	r.putRule(strings.Replace(callsRate, `"cost":1`, `"onStoreLoss":"open"`, 1))
	r.send(0, "POST", "", chat("a", 1)).is(t, 201)
	r.server.FlushAll()
	for _, c := range [][3]string{{"POST", "", chat("b", 1)}, {"POST", "", chat("a", 1)}, {"POST", "/a/commit", `{"cost":1}`}, {"GET", "/a", ""}, {"DELETE", "/a", ""}} {
		a := r.send(0, c[0], c[1], c[2])
		if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" || a.problem(t).Type != reject.ReducedCapacity {
			t.Errorf("%v: %d %s", c, a.StatusCode, a.body)
		}
	}
	all := r.gates[0].events()
	if len(all) != 3 || all[1].Reason != charge.Restoring || all[1].StatusCode != 503 || all[1].Decision != usage.DecisionDeny {
		t.Errorf("%+v", all)
	}
}

// 64 that reserve by one id, then 64 that end it, on two gates: once each.
func TestManyAtOnceReserveAndEnd(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 2)
	r.putRule(tokensQuota)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() { r.send(i%2, "POST", "", chat("a", 10)).is(t, 201) })
	}
	all.Wait()
	if n := r.used(tokensCounter); n != 10 {
		t.Fatalf("%d used", n)
	}
	r.wait(time.Minute)
	var ended atomic.Int64
	for i := range 64 {
		all.Go(func() {
			switch i % 3 {
			case 0:
				if a := r.send(i%2, "POST", "/a/commit", fmt.Sprintf(`{"cost":%d}`, i)); a.StatusCode == 200 {
					ended.Add(1)
				} else if a.StatusCode != 409 {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
			case 1:
				if a := r.send(i%2, "DELETE", "/a", ""); a.StatusCode != 200 && a.StatusCode != 409 {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
			default:
				r.gates[i%2].gate.sweep(t.Context())
			}
		})
	}
	all.Wait()
	r.gates[0].gate.sweep(t.Context())
	got := r.send(0, "GET", "/a", "").is(t, 200)
	want := int64(0)
	if got.State == "committed" {
		want = *got.Committed
	}
	byID, units := r.told()
	if n := r.used(tokensCounter); n != want || units[tokensCounter] != want || len(byID) != 2 || ended.Load() > 1 {
		t.Errorf("%+v: %d used, told %v in %d events, %d commits", got, n, units, len(byID), ended.Load())
	}
}

// Shadow rules are asked, and deny nothing.
func TestShadowRulesOfReservations(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 1)
	r.putRule(tokensQuota)
	r.putRule(`{"id":"tight","subject":{"kind":"tenant","value":"*"},"scope":{"service":"llm"},"metric":"tokens","limit":{"algorithm":"quota","kind":"renewing","limit":15,"period":"month"},"mode":"shadow"}`)
	r.send(0, "POST", "", chat("a", 10)).is(t, 201)
	r.send(0, "POST", "", chat("b", 10)).is(t, 201)
	r.send(0, "POST", "/a/commit", `{"cost":2}`).is(t, 200)
	r.send(0, "DELETE", "/b", "").is(t, 200)
	all := r.gates[0].events()
	if len(all) != 4 || all[1].Decision != usage.DecisionShadow || all[1].RuleID != "tight" || all[0].Decision != usage.DecisionAllow {
		t.Fatalf("%+v", all)
	}
	units := map[string]int64{}
	for _, e := range all {
		for _, c := range e.Charges {
			units[c.Counter] += c.Amount
		}
	}
	const tight = "{t:acme}:t::tokens:quota-shadow:month:202607"
	if units[tokensCounter] != 2 || units[tight] != 2 || r.used(tight) != 2 {
		t.Errorf("%v, %d used", units, r.used(tight))
	}
}

// Another service's catalog cannot take the paths.
func TestOwnPathsAreNoServices(t *testing.T) {
	t.Parallel()
	r := newReserving(t, 1)
	r.gates[0].putService(catalog.Service{Name: "root", Prefix: "/"})
	for _, path := range []string{"/.sluice/", "/.sluice/x", "/%2Esluice/v1", "/a/../.sluice/v1/reservations/x/y"} {
		if a := r.gates[0].get(path, "X-Tenant-Id", "acme"); a.StatusCode != 404 || len(r.gates[0].requests()) != 0 {
			t.Errorf("%s: %d, %d requests forwarded", path, a.StatusCode, len(r.gates[0].requests()))
		}
	}
}
