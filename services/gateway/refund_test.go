package gateway

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge/journal"
	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
)

// modelLedger settles in the reference model, once for each number. Decisions it
// asks of the stand's store.
type modelLedger struct {
	now   func() time.Time
	model limit.Store
	store limit.Store
	mu    sync.Mutex
	last  map[string]uint64
}

func (l *modelLedger) Clock() time.Time { return l.now() }
func (*modelLedger) Epoch() string      { return "epoch" }

func (l *modelLedger) Settle(ctx context.Context, once limit.Once, counters []limit.Counter) (broken []int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if once.Seq <= l.last[once.ID] {
		return nil, nil
	}
	l.last[once.ID] = once.Seq
	for _, c := range counters {
		if _, err := l.model.Decide(ctx, []limit.Counter{c}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// refunding is a stand with a real journal, in a folder that outlives it.
type refunding struct {
	*stand
	store  *failingStore
	ledger *modelLedger
	dir    string
	debts  *journal.Journal
	stop   func()
}

func newRefunding(t *testing.T, o standOptions) *refunding {
	t.Helper()
	o.trusted = []string{loopback}
	if o.now == nil {
		o.now = func() time.Time { return noon }
	}
	model := limit.NewModel(o.now)
	s := &refunding{stand: newStand(t, o), ledger: &modelLedger{now: o.now, model: model, last: map[string]uint64{}}, dir: t.TempDir()}
	s.store = s.use(model)
	s.ledger.store = s.store
	s.open()
	t.Cleanup(func() { s.stop() })
	return s
}

// open begins the journal's process.
func (s *refunding) open() {
	s.t.Helper()
	debts, err := journal.Open(journal.Options{Dir: s.dir, SizeBytes: 1 << 20, Gateway: "gw", Store: s.ledger, Now: s.ledger.now})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- debts.Run(ctx) }()
	s.debts, s.gate.charger.Journal = debts, debts
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		if err := debts.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

// used is what was taken of each rule's hundred units, once all is settled.
func (s *refunding) used() map[string]int64 {
	s.t.Helper()
	servertest.Eventually(s.t, 10*time.Second, "the journal to be empty", func() bool { return s.debts.Pending() == 0 })
	used := map[string]int64{}
	for _, w := range s.explained(`{"tenantId":"acme","userId":"u1","path":"/demo/other"}`).Winners {
		used[w.ID] = 100 - *w.Remaining
	}
	return used
}

// amounts sums up what events tell of each metric.
func amounts(events ...usage.Event) (sums map[string]int64, refunds int) {
	sums = map[string]int64{}
	for _, e := range events {
		for _, c := range e.Charges {
			sums[c.Metric] += c.Amount
			if c.Refund {
				refunds++
			}
		}
	}
	return sums, refunds
}

const hundred = `{"algorithm":"quota","kind":"renewing","limit":100,"period":"month"}`

// unreliable answers as its path says: a status, slowly, or not at all.
func unreliable(w http.ResponseWriter, r *http.Request) {
	w.Header()["X-Cost"] = r.URL.Query()["cost"]
	switch word := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; word {
	case "slow":
		<-r.Context().Done()
	case "broken":
		panic(http.ErrAbortHandler)
	case "another":
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "another")
		w.WriteHeader(http.StatusSwitchingProtocols)
	case "switch":
		w.WriteHeader(http.StatusSwitchingProtocols)
	default:
		status, err := strconv.Atoi(word)
		if err != nil {
			status = http.StatusOK
		}
		w.WriteHeader(status)
	}
}

func unreliableStand(t *testing.T) *refunding {
	t.Helper()
	up := DefaultConfig().Upstream
	up.ResponseTimeout = 100 * time.Millisecond
	return newRefunding(t, standOptions{handler: unreliable, upstream: up, catalog: []catalog.Service{
		{Name: "demo", Prefix: "/demo/", CostHeader: "X-Cost"},
		{Name: "gone", Prefix: "/gone/", Upstreams: []catalog.Upstream{{URL: "http://127.0.0.1:1"}}},
	}})
}

// What a rule charged for a call that failed as it names is given back, and the
// event tells both; whatever else happens, the charge stands.
func TestFailedCallsAreGivenBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, refundOn string
		status         int
		used           int64
	}{
		"answered 500":          {"/demo/500", `["5xx"]`, 500, 0},
		"answered 200":          {"/demo/200", `["5xx","timeout","error"]`, 200, 1},
		"no refundOn":           {"/demo/500", `[]`, 500, 1},
		"status by name":        {"/demo/503", `["404","503"]`, 503, 0},
		"another status":        {"/demo/500", `["503"]`, 500, 1},
		"a client's error":      {"/demo/404", `["5xx","timeout","error"]`, 404, 1},
		"too slow":              {"/demo/slow", `["timeout"]`, 504, 0},
		"too slow, as 5xx":      {"/demo/slow", `["5xx"]`, 504, 0},
		"too slow, not named":   {"/demo/slow", `["error","503"]`, 504, 1},
		"connection broken":     {"/demo/broken", `["error"]`, 502, 0},
		"not reachable":         {"/gone/x", `["error"]`, 502, 0},
		"not reachable, 502":    {"/gone/x", `["502"]`, 502, 0},
		"unreachable not named": {"/gone/x", `["timeout"]`, 502, 1},
		"switches unasked":      {"/demo/switch", `["error"]`, 502, 0},
		"switches to another":   {"/demo/another", `["5xx"]`, 502, 0},
		"answers 504 itself":    {"/demo/504", `["timeout"]`, 504, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := unreliableStand(t)
			s.putRule(ruleJSON("r", "tenant", "calls", hundred, `,"refundOn":`+c.refundOn))
			a := s.get(c.path, acme...)
			e := s.event()
			if a.StatusCode != c.status || e.StatusCode != c.status || e.Decision != "ALLOW" || e.Cost != 1 {
				t.Errorf("%d, event %+v", a.StatusCode, e)
			}
			sums, refunds := amounts(e)
			if got := s.used()["r"]; got != c.used || sums["calls"] != c.used || refunds != int(1-c.used) {
				t.Errorf("%d used, want %d; charges %+v", got, c.used, e.Charges)
			}
			if e.Charges[len(e.Charges)-1].Consumed != 1 { // the charge itself, after what was given back
				t.Errorf("charges %+v", e.Charges)
			}
			if got := testutil.ToFloat64(s.gate.metrics.charging.Refunds); got != float64(1-c.used) {
				t.Errorf("%v calls are counted as refunded", got)
			}
			if s.get("/demo/200", acme...); s.used()["r"] != c.used+1 {
				t.Errorf("%v used after one more", s.used())
			}
		})
	}
}

// Of several rules those give back that name the failure: quotas, rates, rules
// with a cost of their own and those that are only tried; each by its own cost.
func TestEachRuleGivesBackForItself(t *testing.T) {
	t.Parallel()
	s := unreliableStand(t)
	const back = `,"refundOn":["5xx"]`
	s.putRule(ruleJSON("keeps", "tenant", "a", hundred, ""))
	s.putRule(ruleJSON("quota", "tenant", "b", hundred, back))
	s.putRule(ruleJSON("own", "tenant", "c", hundred, back+`,"cost":3`))
	s.putRule(ruleJSON("fixed", "tenant", "d", `{"algorithm":"fixedWindow","limit":100,"window":"1h"}`, back))
	s.putRule(ruleJSON("gcra", "tenant", "e", `{"algorithm":"gcra","limit":100,"window":"24h"}`, back))
	s.putRule(ruleJSON("trial", "tenant", "f", hundred, back+inShadow))
	s.putRule(ruleJSON("only503", "user", "g", hundred, `,"refundOn":["503"]`))
	s.putRule(ruleJSON("free", "user", "h", hundred, `,"cost":0`))
	for i, c := range []struct {
		path string
		want map[string]int64
	}{
		{"/demo/500", map[string]int64{"keeps": 1, "only503": 1}},
		{"/demo/200", map[string]int64{"keeps": 2, "quota": 1, "own": 3, "fixed": 1, "gcra": 1, "trial": 1, "only503": 2}},
		{"/demo/503", map[string]int64{"keeps": 3, "quota": 1, "own": 3, "fixed": 1, "gcra": 1, "trial": 1, "only503": 2}},
	} {
		s.get(c.path, acme...)
		got := s.used()
		for _, id := range []string{"keeps", "quota", "own", "fixed", "gcra", "trial", "only503", "free"} {
			if got[id] != c.want[id] {
				t.Errorf("request %d: %d used of %s, want %d", i, got[id], id, c.want[id])
			}
		}
	}
	sums, _ := amounts(s.events()...)
	for metric, want := range map[string]int64{"a": 3, "b": 1, "c": 3, "d": 0, "f": 1, "g": 2} {
		if sums[metric] != want {
			t.Errorf("events tell %d of %s, want %d", sums[metric], metric, want)
		}
	}
}

// The service's word on the cost is about the rules that keep their charge; the
// others give back what they took.
func TestCorrectedCostsAndRefunds(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]error{"counted": nil, "uncounted": limit.ErrUnavailable} {
		s := unreliableStand(t)
		s.putRule(ruleJSON("keeps", "tenant", "a", hundred, `,"onStoreLoss":"open"`))
		s.putRule(ruleJSON("back", "tenant", "b", hundred, `,"onStoreLoss":"open","refundOn":["5xx"]`))
		s.store.down = down
		s.get("/demo/500?cost=7", acme...)
		s.get("/demo/200?cost=9", acme...)
		s.store.down = nil
		events := s.events()
		sums, refunds := amounts(events...)
		if got := s.used(); got["keeps"] != 16 || got["back"] != 9 || sums["a"] != 16 || sums["b"] != 9 || refunds != 1 || events[0].Cost != 7 {
			t.Errorf("%s: %v used, events tell %v: %+v", name, got, sums, events)
		}
	}
}

// A request that passed without the store and failed owes nothing.
func TestUncountedCallsThatFailOweNothing(t *testing.T) {
	t.Parallel()
	s := unreliableStand(t)
	s.putRule(ruleJSON("open", "tenant", "a", hundred, `,"onStoreLoss":"open","refundOn":["timeout"]`))
	s.putRule(ruleJSON("share", "user", "b", `{"algorithm":"fixedWindow","limit":100,"window":"1h"}`, `,"onStoreLoss":"local","refundOn":["timeout"]`))
	s.store.down = limit.ErrUnavailable
	for _, path := range []string{"/demo/slow", "/demo/500", "/demo/slow"} {
		if a := s.get(path, acme...); a.Header.Get("Sluice-Degraded") == "" {
			t.Errorf("%s: %d %v", path, a.StatusCode, a.Header)
		}
	}
	s.store.down = nil
	sums, refunds := amounts(s.events()...)
	if got := s.used(); got["open"] != 1 || got["share"] != 1 || sums["a"] != 1 || refunds != 2 {
		t.Errorf("%v used, events tell %v, %d refunds", got, sums, refunds)
	}
}

// A client that goes away has had its call made: the charge stands. One whose
// gateway stops, or dies, has not had its answer: the charge is given back. What
// passed uncounted is owed at the end only.
func TestCallsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	goes := func(_ *refunding, cancel context.CancelCauseFunc) { cancel(nil) }
	stops := func(_ *refunding, cancel context.CancelCauseFunc) { cancel(proxy.ErrStopped) }
	dies := func(s *refunding, _ context.CancelCauseFunc) { s.stop(); s.open() }
	for name, c := range map[string]struct {
		down        error
		end         func(s *refunding, cancel context.CancelCauseFunc)
		while, used int64
	}{
		"the client goes away":            {nil, goes, 1, 1},
		"the gateway stops":               {nil, stops, 1, 0},
		"the gateway dies":                {nil, dies, 1, 0},
		"uncounted, the client goes away": {limit.ErrUnavailable, goes, 0, 1},
		"uncounted, the gateway stops":    {limit.ErrUnavailable, stops, 0, 0},
		"uncounted, the gateway dies":     {limit.ErrUnavailable, dies, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived := make(chan struct{})
			s := newRefunding(t, standOptions{handler: func(_ http.ResponseWriter, r *http.Request) {
				close(arrived)
				<-r.Context().Done()
			}})
			s.putRule(ruleJSON("r", "tenant", "calls", hundred, `,"onStoreLoss":"open","refundOn":["503"]`))
			s.store.down = c.down
			ctx, cancel := context.WithCancelCause(t.Context())
			served := make(chan struct{})
			defer func() {
				cancel(nil)
				<-served
			}()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gate/demo/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.RemoteAddr = "127.0.0.1:5000"
			for i := 0; i < len(acme); i += 2 {
				req.Header.Set(acme[i], acme[i+1])
			}
			go func() {
				defer close(served)
				s.gate.ServeHTTP(discard{}, req)
			}()
			<-arrived
			s.store.down = nil
			if got := s.used()["r"]; got != c.while {
				t.Errorf("%d used while the service works, want %d", got, c.while)
			}
			c.end(s, cancel)
			if !strings.HasSuffix(name, "the gateway dies") {
				<-served
				if e := s.event(); e.StatusCode != 499 {
					t.Errorf("event %+v", e)
				}
			}
			if got := s.used()["r"]; got != c.used {
				t.Errorf("%d used, want %d", got, c.used)
			}
		})
	}
}

// discard is an answer nobody reads.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

// A call that took all of a bucket fails after others have used what was refilled
// meanwhile: nothing of it comes back, and no more pass than the rule lets. One
// that fails at once has all of it back.
func TestBucketsGiveBackNothingTwice(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"gcra", "tokenBucket"} {
		for _, late := range []time.Duration{0, 4 * time.Second} {
			var clock atomic.Int64
			clock.Store(noon.UnixMicro())
			var s *refunding
			s = newRefunding(t, standOptions{
				now: func() time.Time { return time.UnixMicro(clock.Load()).UTC() },
				handler: func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/demo/fails" {
						return
					}
					clock.Add(late.Microseconds())
					if a := s.get("/demo/x", acme...); (a.StatusCode == http.StatusOK) != (late > 0) {
						t.Errorf("another %s later: %d", late, a.StatusCode)
					}
					w.WriteHeader(http.StatusServiceUnavailable)
				},
			})
			s.putRule(ruleJSON("r", "tenant", "calls", `{"algorithm":"`+algorithm+`","limit":20,"window":"2s","burst":20}`, `,"cost":20,"refundOn":["503"]`))
			if a := s.get("/demo/fails", acme...); a.StatusCode != http.StatusServiceUnavailable {
				t.Fatalf("%d", a.StatusCode)
			}
			s.used()
			if a := s.get("/demo/x", acme...); (a.StatusCode == http.StatusOK) == (late > 0) {
				t.Errorf("%s, failed after %s: %d", algorithm, late, a.StatusCode)
			}
		}
	}
}

// A denied request was charged nothing, and gives nothing back.
func TestDeniedCallsGiveNothingBack(t *testing.T) {
	t.Parallel()
	s := unreliableStand(t)
	s.putRule(ruleJSON("r", "tenant", "calls", strings.Replace(hundred, "100", "1", 1), `,"refundOn":["5xx","429"]`))
	var statuses []int
	for _, path := range []string{"/demo/200", "/demo/500", "/demo/500"} {
		statuses = append(statuses, s.get(path, acme...).StatusCode)
	}
	if sums, refunds := amounts(s.events()...); !slices.Equal(statuses, []int{200, 429, 429}) || sums["calls"] != 1 || refunds != 0 {
		t.Errorf("%v, %v, %d refunds", statuses, sums, refunds)
	}
}

// A request that wants nothing but a stored answer asks no service: its 504 is
// no failure of one.
func TestOnlyIfCachedGivesNothingBack(t *testing.T) {
	t.Parallel()
	s := newRefunding(t, standOptions{catalog: []catalog.Service{{Name: "demo", Prefix: "/demo/", Cache: &catalog.Cache{}}}})
	s.putRule(ruleJSON("r", "tenant", "calls", hundred, `,"refundOn":["5xx","timeout","504"]`))
	a := s.get("/demo/x", append([]string{"Cache-Control", "only-if-cached"}, acme...)...)
	if got := s.used()["r"]; a.StatusCode != http.StatusGatewayTimeout || got != 1 || len(s.requests()) != 0 {
		t.Errorf("%d, %d used, the service saw %d requests", a.StatusCode, got, len(s.requests()))
	}
}
