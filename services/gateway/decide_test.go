package gateway

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/membership"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
)

// failingStore fails as it is told, and otherwise asks the model.
type failingStore struct {
	limit.Store
	calls  atomic.Int64
	down   error
	broken string // part of the keys that hold something else
}

func (s *failingStore) Decide(ctx context.Context, counters []limit.Counter) (limit.Decision, error) {
	s.calls.Add(1)
	for _, c := range counters {
		if s.broken != "" && strings.Contains(c.Key, s.broken) {
			return limit.Decision{}, fmt.Errorf("%w: %s", limit.ErrCounterBroken, c.Key)
		}
	}
	if s.down != nil {
		return limit.Decision{}, s.down
	}
	return s.Store.Decide(ctx, counters)
}

func (s *stand) use(store limit.Store) *failingStore {
	f := &failingStore{Store: store}
	s.gate.charger.Store = f
	return f
}

func ruleJSON(id, kind, metric, limit, rest string) string {
	return fmt.Sprintf(`{"id":%q,"subject":{"kind":%q,"value":"*"},"metric":%q,"limit":%s%s}`, id, kind, metric, limit, rest)
}

const (
	tenOnce  = `{"algorithm":"fixedWindow","limit":10,"window":"1h"}`
	twoOnce  = `{"algorithm":"fixedWindow","limit":2,"window":"1h"}`
	noRate   = `{"algorithm":"fixedWindow","limit":0,"window":"1h"}`
	tenQuota = `{"algorithm":"quota","kind":"renewing","limit":10,"period":"month"}`
	noQuota  = `{"algorithm":"quota","kind":"renewing","limit":0,"period":"month"}`
)

var acme = []string{"X-Tenant-Id", "acme", "X-User-Id", "u1"}

func TestOverTheLimitIs429(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}})
	s.putRule(ruleJSON("two", "tenant", "calls", twoOnce, ""))
	for i := range 2 {
		a := s.get("/demo/x", acme...)
		e := s.event()
		if a.StatusCode != 200 || e.Decision != "ALLOW" || e.RuleID != "two" || e.Algo != "FIXED_WINDOW" || e.Charges != nil {
			t.Fatalf("%d %s, event %+v", a.StatusCode, a.body, e)
		}
		limits := parseField(t, a.Header.Values("RateLimit"))
		if want := []item{{"two", map[string]int64{"r": int64(1 - i), "t": 3600}}}; !reflect.DeepEqual(limits, want) {
			t.Errorf("RateLimit is %v, want %v", limits, want)
		}
		if want := []item{{"two", map[string]int64{"q": 2, "w": 3600}}}; !reflect.DeepEqual(parseField(t, a.Header.Values("RateLimit-Policy")), want) {
			t.Errorf("RateLimit-Policy is %v", a.Header)
		}
	}
	a := s.get("/demo/x", acme...)
	p, e := a.problem(t), s.event()
	if a.StatusCode != 429 || p.Type != reject.QuotaExceeded || !reflect.DeepEqual(p.Violated, []string{"two"}) || a.Header.Get("Retry-After") != "3600" {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	if e.Decision != "DENY" || e.StatusCode != 429 || e.Reason != charge.QuotaExceeded || e.ID != a.Header.Get(respond.HeaderDecisionID) || e.ID != p.DecisionID {
		t.Errorf("event %+v, answer %v %s", e, a.Header, a.body)
	}
	parseField(t, a.Header.Values("RateLimit"))
	parseField(t, a.Header.Values("RateLimit-Policy"))
	if n := len(s.requests()); n != 2 {
		t.Errorf("the upstream has seen %d requests", n)
	}
	if a := s.get("/demo/x", "X-Tenant-Id", "globex"); a.StatusCode != 200 {
		t.Errorf("another tenant is denied: %d", a.StatusCode)
	}
	for o, want := range map[charge.Outcome]float64{charge.Allow: 3, charge.Deny: 1, charge.Error: 0} {
		if got := testutil.ToFloat64(s.gate.metrics.decisions[o]); got != want {
			t.Errorf("decisions %s: %v, want %v", charge.OutcomeNames[o], got, want)
		}
	}
}

// A tenant and its user have counters of their own; a request that one denies
// charges neither.
func TestTenantAndUserAreCountedApart(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}})
	s.putRule(ruleJSON("tenant", "tenant", "calls", tenOnce, ""))
	s.putRule(ruleJSON("user", "user", "calls", twoOnce, ""))
	passed := map[string]int{}
	for _, user := range []string{"u1", "u1", "u1", "u1", "u2", "u2", "u2", "u3", "u3", "u4", "u4", "u5", "u5", "u6"} {
		if s.get("/demo/x", "X-Tenant-Id", "acme", "X-User-Id", user).StatusCode == 200 {
			passed[user]++
		}
	}
	want := map[string]int{"u1": 2, "u2": 2, "u3": 2, "u4": 2, "u5": 2} // 10 in all, none for u6
	if !reflect.DeepEqual(passed, want) {
		t.Errorf("passed %v, want %v", passed, want)
	}
}

func TestQuotaChargesCarryTotals(t *testing.T) {
	t.Parallel()
	cost := int64(4)
	s := newStand(t, standOptions{trusted: []string{loopback}, catalog: []catalog.Service{{
		Name: "demo", Prefix: "/demo/", Endpoints: []catalog.Endpoint{{Pattern: "GET /demo/export", Cost: &cost}, {Pattern: "GET /demo/free", Cost: new(int64)}},
	}}})
	s.putRule(ruleJSON("month", "tenant", "units", tenQuota, ""))
	s.putRule(ruleJSON("rate", "tenant", "calls", tenOnce, `,"cost":1`))
	for i, want := range []int64{4, 8} {
		s.get("/demo/export", acme...)
		e := s.event()
		if len(e.Charges) != 1 {
			t.Fatalf("charges %+v", e.Charges)
		}
		c := e.Charges[0]
		if c.Amount != 4 || c.Consumed != want || c.Refunded != 0 || c.Metric != "units" || c.Limit == nil || *c.Limit != 10 || !strings.HasSuffix(c.Counter, ":202607") || e.Cost != 4 {
			t.Errorf("request %d: event %+v", i, e)
		}
	}
	if a := s.get("/demo/export", acme...); a.StatusCode != 429 {
		t.Errorf("12 of 10 units: %d", a.StatusCode)
	}
	if e := s.event(); e.Charges != nil || e.Algo != "RENEWING_QUOTA" || e.RuleID != "month" {
		t.Errorf("a denied request is charged: %+v", e)
	}
	if s.get("/demo/free", acme...); len(s.event().Charges) != 0 {
		t.Error("a free request is charged")
	}
	s.get("/demo/x", acme...)
	if e := s.event(); len(e.Charges) != 1 || e.Charges[0].Consumed != 9 {
		t.Errorf("event %+v", e)
	}
}

func TestZeroUnlimitedAbsentAreThreeThings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules  []string
		status int
		kind   string
	}{
		"absent":           {nil, 200, ""},
		"unlimited":        {[]string{`{"id":"a","subject":{"kind":"tenant","value":"*"},"metric":"m","unlimited":true}`}, 200, ""},
		"quota of 0":       {[]string{ruleJSON("a", "tenant", "m", noQuota, "")}, 403, reject.NotEntitled},
		"rate of 0":        {[]string{ruleJSON("a", "tenant", "m", noRate, "")}, 429, reject.QuotaExceeded},
		"403 goes first":   {[]string{ruleJSON("a", "tenant", "m", noRate, ""), ruleJSON("b", "user", "m", noQuota, "")}, 403, reject.NotEntitled},
		"identity missing": {[]string{ruleJSON("a", "application", "m", tenOnce, `,"onMissing":"deny"`)}, 403, reject.IdentityMissing},
		"identity skipped": {[]string{ruleJSON("a", "application", "m", noRate, `,"onMissing":"skip"`)}, 200, ""},
	} {
		s := newStand(t, standOptions{trusted: []string{loopback}})
		for _, r := range c.rules {
			s.putRule(r)
		}
		a := s.get("/demo/x", acme...)
		if a.StatusCode != c.status || a.Header.Get("Retry-After") != "" || a.Header.Get(respond.HeaderDecisionID) == "" {
			t.Errorf("%s: %d %v %s", name, a.StatusCode, a.Header, a.body)
		}
		if c.kind != "" {
			if p := a.problem(t); p.Type != c.kind || len(p.Violated) == 0 {
				t.Errorf("%s: %s", name, a.body)
			}
		}
		if e := s.event(); e.StatusCode != c.status {
			t.Errorf("%s: event %+v", name, e)
		}
		if got := a.Header.Values("RateLimit"); (name == "absent" || name == "unlimited") && got != nil {
			t.Errorf("%s: RateLimit %q", name, got)
		}
	}
}

func TestNoRuleAsksNoStore(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{})
	store := s.use(limit.NewModel(s.gate.now))
	if s.get("/demo/x"); store.calls.Load() != 0 {
		t.Error("the store was asked")
	}
	if e := s.event(); e.RuleID != "" || e.Decision != "ALLOW" || e.TenantID != "" {
		t.Errorf("event %+v", e)
	}
	s.putRule(`{"id":"r","subject":{"kind":"service","value":"*"},"metric":"m","limit":` + tenOnce + `}`)
	s.putRule(`{"id":"q","subject":{"kind":"service","value":"*"},"metric":"m","limit":` + tenQuota + `}`)
	if s.get("/demo/x"); store.calls.Load() != 1 {
		t.Errorf("two rules took %d calls", store.calls.Load())
	}
}

func TestStoreAwayIsTheRulesOwnMatter(t *testing.T) {
	t.Parallel()
	open, closed := `,"onStoreLoss":"open"`, `,"onStoreLoss":"closed"`
	for name, c := range map[string]struct {
		rules    []string
		down     error
		broken   string
		status   int
		degraded bool
		violated []string
	}{
		"open":            {[]string{ruleJSON("a", "tenant", "m", tenOnce, open)}, limit.ErrUnavailable, "", 200, true, nil},
		"closed":          {[]string{ruleJSON("a", "tenant", "m", tenOnce, closed)}, limit.ErrUnavailable, "", 503, false, []string{"a"}},
		"strictest":       {[]string{ruleJSON("a", "tenant", "m", tenOnce, open), ruleJSON("b", "user", "m", tenOnce, closed)}, limit.ErrUnavailable, "", 503, false, []string{"b"}},
		"default rate":    {[]string{ruleJSON("a", "tenant", "m", tenOnce, "")}, limit.ErrUnavailable, "", 200, true, nil},
		"default quota":   {[]string{ruleJSON("a", "tenant", "m", tenQuota, "")}, limit.ErrUnavailable, "", 503, false, []string{"a"}},
		"403 before 503":  {[]string{ruleJSON("a", "tenant", "m", tenOnce, closed), ruleJSON("b", "user", "m", noQuota, "")}, limit.ErrUnavailable, "", 403, false, []string{"b"}},
		"a bug is no 500": {[]string{ruleJSON("a", "tenant", "m", tenOnce, closed)}, context.DeadlineExceeded, "", 503, false, []string{"a"}},
		"broken open":     {[]string{ruleJSON("a", "tenant", "sick", tenOnce, open), ruleJSON("b", "tenant", "m", tenOnce, "")}, nil, "sick", 200, true, nil},
		"broken closed":   {[]string{ruleJSON("a", "tenant", "sick", tenOnce, closed), ruleJSON("b", "tenant", "m", tenOnce, "")}, nil, "sick", 503, false, []string{"a"}},
		"the rest holds":  {[]string{ruleJSON("a", "tenant", "sick", tenOnce, open), ruleJSON("b", "tenant", "m", noRate, "")}, nil, "sick", 429, true, []string{"b"}},
	} {
		s := newStand(t, standOptions{trusted: []string{loopback}})
		store := s.use(limit.NewModel(s.gate.now))
		for _, r := range c.rules {
			s.putRule(r)
		}
		store.down, store.broken = c.down, c.broken
		why, told := charge.LossOfStore, 0.0
		if c.broken != "" {
			why, told = charge.LossOfCounter, 1
		}
		a := s.get("/demo/x", acme...)
		e := s.event()
		if a.StatusCode != c.status || (a.Header.Get("Sluice-Degraded") == why.Degraded) != c.degraded || e.StatusCode != c.status {
			t.Errorf("%s: %d %v %s, event %+v", name, a.StatusCode, a.Header, a.body, e)
		}
		if c.status != 200 {
			if p := a.problem(t); !reflect.DeepEqual(p.Violated, c.violated) || e.Decision != "DENY" {
				t.Errorf("%s: %s, event %+v", name, a.body, e)
			}
		}
		if c.status == 503 {
			wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
			if err != nil || wait < 1 || a.problem(t).Type != reject.ReducedCapacity || a.problem(t).Detail != why.Detail || e.Reason != why.Reason {
				t.Errorf("%s: %v %s, event %+v", name, a.Header, a.body, e)
			}
			if testutil.ToFloat64(s.gate.metrics.charging.Fallback[charge.Closed]) != 1 || testutil.ToFloat64(s.gate.metrics.decisions[charge.Error]) != 1 {
				t.Errorf("%s: metrics", name)
			}
		}
		if c.status == 200 && e.Reason != why.Reason {
			t.Errorf("%s: reason %s", name, e.Reason)
		}
		if n := testutil.ToFloat64(s.gate.metrics.charging.Broken); n != told {
			t.Errorf("%s: %v broken counters are told of", name, n)
		}
		if c.degraded && testutil.ToFloat64(s.gate.metrics.charging.Fallback[charge.Open]) != 1 {
			t.Errorf("%s: fallback is not counted", name)
		}
		if store.down, store.broken = nil, ""; s.get("/demo/x", acme...).Header.Get("Sluice-Degraded") != "" {
			t.Errorf("%s: still degraded when the store is back", name)
		}
	}
}

// A broken counter is its own rule's matter, by its share too: the others are
// charged at once, and nothing is owed, since the journal could not charge it.
func TestBrokenCounterIsItsOwnRulesMatter(t *testing.T) {
	t.Parallel()
	s, store, book := lossy(t, membership.Position{Live: 2, Rank: 1}, standOptions{})
	s.putRule(ruleJSON("sick", "tenant", "sick", twoOnce, `,"onStoreLoss":"local"`))
	s.putRule(ruleJSON("month", "tenant", "m", tenQuota, ""))
	store.broken = "sick"
	// Of two gateways each has one of two.
	a, e := s.get("/demo/x", acme...), s.event()
	if a.StatusCode != 200 || a.Header.Get("Sluice-Degraded") != "counter" || e.Reason != "counter-broken" || e.RuleID != "sick" {
		t.Errorf("%d %v, event %+v", a.StatusCode, a.Header, e)
	}
	if len(e.Charges) != 1 || e.Charges[0].Consumed != 1 || e.Charges[0].Pending {
		t.Errorf("charges %+v", e.Charges)
	}
	a, e = s.get("/demo/x", acme...), s.event()
	if p := a.problem(t); a.StatusCode != 429 || !reflect.DeepEqual(p.Violated, []string{"sick"}) || e.Reason != charge.QuotaExceeded {
		t.Errorf("%d %s, event %+v", a.StatusCode, a.body, e)
	}
	// The store goes away between the look at each and the charge of the rest.
	store.broken, store.down = "", nil
	s.gate.charger.Store = &lossyStore{Store: brokenKey{store, "sick"}, answers: 3}
	s.putRule(ruleJSON("sick", "tenant", "sick", twoOnce, `,"onStoreLoss":"open"`))
	s.putRule(ruleJSON("month", "tenant", "m", tenQuota, `,"onStoreLoss":"open"`))
	a, e = s.get("/demo/x", acme...), s.event()
	if a.StatusCode != 200 || e.Reason != charge.StoreUnavailable || len(e.Charges) != 1 || !e.Charges[0].Pending {
		t.Errorf("%d, event %+v", a.StatusCode, e)
	}
	if book.total() != 1 || book.costs["{t:acme}:t::m:quota"] != 1 {
		t.Errorf("owed %v, want one unit of the month", book.costs)
	}
}

// Of a rule that cannot be read its onStoreLoss holds; the others go on.
func TestUnreadableRulesAreTheirOwnPolicy(t *testing.T) {
	t.Parallel()
	for policy, c := range map[string]struct {
		status int
		others string // what stands beside it
		reason string
	}{
		"open":   {200, tenOnce, "rule-unreadable"},
		"local":  {200, tenOnce, "rule-unreadable"}, // of no limit there is no share
		"closed": {503, tenOnce, "rule-unreadable"},
	} {
		s, _, book := lossy(t, membership.Position{Live: 1}, standOptions{})
		s.putUnreadable(fmt.Sprintf(`{"id":"new","subject":{"kind":"tenant","value":"acme"},"metric":"m","limit":{"algorithm":"ofTheFuture"},"onStoreLoss":%q}`, policy))
		s.putRule(ruleJSON("calls", "tenant", "m", c.others, ""))
		out := s.explained(`{"tenantId":"acme","path":"/demo/x"}`)
		a, e := s.get("/demo/x", acme...), s.event()
		if a.StatusCode != c.status || e.Reason != c.reason || e.RuleID != "new" || e.Algo != "" || book.total() != 0 {
			t.Errorf("%s: %d, event %+v, owed %v", policy, a.StatusCode, e, book.costs)
		}
		if c.status == 503 {
			if p := a.problem(t); p.Type != reject.ReducedCapacity || p.Detail != charge.LossOfRule.Detail || !reflect.DeepEqual(p.Violated, []string{"new"}) {
				t.Errorf("%s: %s", policy, a.body)
			}
		} else if a.Header.Get("Sluice-Degraded") != "rule" || !strings.HasPrefix(a.Header.Get("RateLimit"), `"calls";r=9`) {
			t.Errorf("%s: %v", policy, a.Header)
		}
		if *out.WouldPass != (c.status == 200) || len(out.Winners) != 2 || out.Rules[len(out.Rules)-1].Result != "unreadable" || out.Winners[1].OnStoreLoss != policy || !strings.Contains(out.Winners[1].Unreadable, "limit.algorithm") {
			t.Errorf("%s: explained %+v", policy, out)
		}
		if other := s.get("/demo/x", "X-Tenant-Id", "globex"); other.StatusCode != 200 || other.Header.Get("Sluice-Degraded") != "" {
			t.Errorf("%s: another tenant: %d %v", policy, other.StatusCode, other.Header)
		}
	}
}

func (s *stand) putUnreadable(text string) {
	s.t.Helper()
	_, err := rule.Decode([]byte(text))
	if err == nil {
		s.t.Fatalf("%s can be read", text)
	}
	c, ok := rule.Salvage([]byte(text), err)
	if !ok {
		s.t.Fatalf("%s cannot be salvaged", text)
	}
	s.index.PutCompiled(c)
}

// brokenKey answers that a counter is broken.
type brokenKey struct {
	limit.Store
	part string
}

func (s brokenKey) Decide(ctx context.Context, counters []limit.Counter) (limit.Decision, error) {
	if slices.ContainsFunc(counters, func(c limit.Counter) bool { return strings.Contains(c.Key, s.part) }) {
		return limit.Decision{}, limit.ErrCounterBroken
	}
	return s.Store.Decide(ctx, counters)
}

// Each answered decision has one event with the answer's id and status, and
// what the counter let pass is what the upstream saw.
func TestConcurrentDecisionsAreExactAndRecordedOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}})
	s.putRule(ruleJSON("hundred", "tenant", "m", `{"algorithm":"fixedWindow","limit":100,"window":"1h"}`, ""))
	var (
		mu       sync.Mutex
		answered = map[string]int{}
		clients  sync.WaitGroup
	)
	for range 16 {
		clients.Go(func() {
			for range 20 {
				a := s.get("/demo/x", acme...)
				mu.Lock()
				answered[a.Header.Get(respond.HeaderDecisionID)] = a.StatusCode
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	recorded, passed := map[string]int{}, 0
	for _, e := range s.events() {
		recorded[e.ID] = e.StatusCode
		if e.StatusCode == http.StatusOK {
			passed++
		}
	}
	if len(answered) != 320 || !reflect.DeepEqual(answered, recorded) {
		t.Errorf("%d answers, %d events", len(answered), len(recorded))
	}
	if passed != 100 || len(s.requests()) != 100 {
		t.Errorf("%d passed, the upstream saw %d, want 100", passed, len(s.requests()))
	}
}
