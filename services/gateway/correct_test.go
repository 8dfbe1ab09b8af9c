package gateway

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
)

// costlyStand has a service that answers with the costs its query names.
func costlyStand(t *testing.T, now func() time.Time) *stand {
	t.Helper()
	return newStand(t, standOptions{
		trusted: []string{loopback}, now: now,
		handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header()["X-Sluice-Cost"] = r.URL.Query()["cost"]
		},
		catalog: []catalog.Service{
			{Name: "demo", Prefix: "/demo/", CostHeader: "x-sluice-cost", Endpoints: []catalog.Endpoint{
				{Pattern: "/demo/export", Cost: new(int64(4))}, {Pattern: "/demo/look", Cost: new(int64(0))},
			}},
			{Name: "tight", Prefix: "/tight/", CostHeader: "X-Sluice-Cost", MaxCost: new(int64(5)), Endpoints: []catalog.Endpoint{
				{Pattern: "/tight/export", Cost: new(int64(4))}, {Pattern: "/tight/dear", Cost: new(int64(7))},
			}},
			{Name: "plain", Prefix: "/plain/", Endpoints: []catalog.Endpoint{{Pattern: "/plain/export", Cost: new(int64(4))}}},
		},
	})
}

func costs(values ...string) string {
	return "?" + url.Values{"cost": values}.Encode()
}

// The service's word is charged or given back before the client is answered:
// event, totals and fields say the corrected numbers.
func TestServicesCorrectCosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path               string
		cost               int64 // of the event
		amount             int64 // charged to the quota; -1: no charge is told
		consumed, refunded int64
		remaining          int64
		result             charge.Correction // corrections: none
		calls              int64
	}{
		"dearer":            {"/demo/export" + costs("7"), 7, 7, 7, 0, 3, charge.Charged, 2},
		"cheaper":           {"/demo/export" + costs("1"), 1, 1, 4, 3, 9, charge.Refunded, 2},
		"free after all":    {"/demo/export" + costs("0"), 0, 0, 4, 4, 10, charge.Refunded, 2},
		"as charged":        {"/demo/export" + costs("4"), 4, 4, 4, 0, 6, charge.Corrections, 1},
		"beyond the limit":  {"/demo/export" + costs("25"), 25, 25, 25, 0, 0, charge.Charged, 2},
		"a look that cost":  {"/demo/look" + costs("5"), 5, 5, 5, 0, 5, charge.Charged, 2},
		"a look":            {"/demo/look" + costs("0"), 0, -1, 0, 0, 10, charge.Corrections, 1},
		"nothing said":      {"/demo/export", 4, 4, 4, 0, 6, charge.Corrections, 1},
		"negative":          {"/demo/export" + costs("-1"), 4, 4, 4, 0, 6, charge.Malformed, 1},
		"a fraction":        {"/demo/export" + costs("1.5"), 4, 4, 4, 0, 6, charge.Malformed, 1},
		"at the most":       {"/demo/export" + costs("1000000"), 1_000_000, 1_000_000, 1_000_000, 0, 0, charge.Charged, 2},
		"gone wild":         {"/demo/export" + costs("1000001"), 4, 4, 4, 0, 6, charge.TooLarge, 1},
		"above its own":     {"/tight/export" + costs("6"), 4, 4, 4, 0, 6, charge.TooLarge, 1},
		"above, yet less":   {"/tight/dear" + costs("6"), 6, 6, 7, 1, 4, charge.Refunded, 2},
		"words":             {"/demo/export" + costs("lots"), 4, 4, 4, 0, 6, charge.Malformed, 1},
		"too much":          {"/demo/export" + costs("9007199254740993"), 4, 4, 4, 0, 6, charge.Malformed, 1},
		"two costs":         {"/demo/export" + costs("1", "2"), 4, 4, 4, 0, 6, charge.Malformed, 1},
		"no costHeader set": {"/plain/export" + costs("7"), 4, 4, 4, 0, 6, charge.Corrections, 1},
	} {
		s := costlyStand(t, nil)
		store := s.use(limit.NewModel(s.gate.now))
		s.putRule(ruleJSON("month", "tenant", "units", tenQuota, ""))
		a := s.get(c.path, acme...)
		e := s.event()
		if a.StatusCode != 200 || e.StatusCode != 200 || e.Cost != c.cost || e.Decision != "ALLOW" {
			t.Errorf("%s: %d, event %+v", name, a.StatusCode, e)
		}
		if c.amount < 0 && e.Charges != nil {
			t.Errorf("%s: charges %+v", name, e.Charges)
		}
		if c.amount >= 0 && (len(e.Charges) != 1 || e.Charges[0].Amount != c.amount || e.Charges[0].Consumed != c.consumed || e.Charges[0].Refunded != c.refunded) {
			t.Errorf("%s: charges %+v", name, e.Charges)
		}
		if got := parseField(t, a.Header.Values("RateLimit")); got[0].params["r"] != c.remaining {
			t.Errorf("%s: RateLimit is %v", name, got)
		}
		if shown := a.Header.Values("X-Sluice-Cost"); (shown != nil) != (name == "no costHeader set") {
			t.Errorf("%s: the client sees the cost %q", name, shown)
		}
		if got := store.calls.Load(); got != c.calls {
			t.Errorf("%s: the store was asked %d times", name, got)
		}
		for r := range charge.Corrections {
			want := 0.0
			if r == c.result {
				want = 1
			}
			if got := testutil.ToFloat64(s.gate.metrics.charging.Corrections[r]); got != want {
				t.Errorf("%s: %v corrections are %s", name, got, charge.CorrectionNames[r])
			}
		}
		// What was used beyond the limit counts, though nothing was denied then.
		if name == "beyond the limit" && s.get("/demo/x", acme...).StatusCode != 429 {
			t.Errorf("%s: the next one passes", name)
		}
	}
}

// A rate and a quota are corrected in one step, a rule with a cost of its own
// is not, and neither is a request that was denied.
func TestCorrectionsReachWhatTheRequestsCostWasChargedTo(t *testing.T) {
	t.Parallel()
	s := costlyStand(t, nil)
	store := s.use(limit.NewModel(s.gate.now))
	s.putRule(ruleJSON("month", "tenant", "units", tenQuota, ""))
	s.putRule(ruleJSON("rate", "tenant", "units", tenOnce, ""))
	s.putRule(ruleJSON("calls", "tenant", "calls", tenOnce, `,"cost":1`))
	left := func(a answer) map[string]int64 {
		out := map[string]int64{}
		for _, it := range parseField(t, a.Header.Values("RateLimit")) {
			out[it.name] = it.params["r"]
		}
		return out
	}
	if got := left(s.get("/demo/export"+costs("6"), acme...)); got["month"] != 4 || got["rate"] != 4 || got["calls"] != 9 {
		t.Errorf("left after 6 of 4: %v", got)
	}
	if got := left(s.get("/demo/export"+costs("2"), acme...)); got["month"] != 2 || got["rate"] != 2 || got["calls"] != 8 {
		t.Errorf("left after 2 of 4: %v", got)
	}
	before := store.calls.Load()
	if a := s.get("/demo/export"+costs("0"), acme...); a.StatusCode != 429 || store.calls.Load() != before+1 {
		t.Errorf("%d after %d calls", a.StatusCode, store.calls.Load()-before)
	}
}

// A rule that is only tried is corrected like the others, in its own counter.
func TestCorrectionsReachShadowRules(t *testing.T) {
	t.Parallel()
	s := costlyStand(t, nil)
	s.putRule(ruleJSON("real", "tenant", "units", tenQuota, ""))
	s.putRule(ruleJSON("trial", "tenant", "units", `{"algorithm":"quota","kind":"renewing","limit":5,"period":"month"}`, inShadow))
	for i, want := range []map[int64][2]int64{ // by limit: amount and consumed
		{10: {6, 6}, 5: {6, 6}},
		{10: {1, 10}}, // the trial would deny: it was not charged, and is not corrected
	} {
		s.get("/demo/export"+costs([]string{"6", "1"}[i]), acme...)
		e := s.event()
		got := map[int64][2]int64{}
		for _, c := range e.Charges {
			got[*c.Limit] = [2]int64{c.Amount, c.Consumed}
		}
		if !maps.Equal(got, want) || (e.Decision == "SHADOW") != (i == 1) {
			t.Errorf("request %d: %s, charged %v, want %v", i, e.Decision, got, want)
		}
	}
}

// lossyStore stops answering after some calls.
type lossyStore struct {
	limit.Store
	answers int
}

func (s *lossyStore) Decide(ctx context.Context, counters []limit.Counter) (limit.Decision, error) {
	if s.answers--; s.answers < 0 {
		return limit.Decision{}, limit.ErrUnavailable
	}
	return s.Store.Decide(ctx, counters)
}

// A charge.Correction that cannot be made now is owed, and the event says so: of the
// whole where the request passed uncounted, else of the difference. A rule with
// a cost of its own is not concerned.
func TestCorrectionsThatCannotBeMadeAreOwed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers  int
		cost     string
		degraded bool
		owed     int64
		pending  []int64
		result   charge.Correction
	}{
		"dearer, charged":    {1, "7", false, 3, []int64{3}, charge.Owed},
		"cheaper, charged":   {1, "1", false, -3, []int64{-3}, charge.Owed},
		"dearer, uncounted":  {0, "7", true, 7 + 1, []int64{7, 1}, charge.Charged},
		"cheaper, uncounted": {0, "1", true, 1 + 1, []int64{1, 1}, charge.Refunded},
	} {
		s := costlyStand(t, nil)
		book := new(notebook)
		s.gate.charger.Store, s.gate.charger.Journal = &lossyStore{limit.NewModel(s.gate.now), c.answers}, book
		s.putRule(ruleJSON("month", "tenant", "units", tenQuota, `,"onStoreLoss":"open"`))
		s.putRule(ruleJSON("calls", "tenant", "calls", tenQuota, `,"onStoreLoss":"open","cost":1`))
		a := s.get("/demo/export"+costs(c.cost), acme...)
		e := s.event()
		if a.StatusCode != 200 || strconv.FormatInt(e.Cost, 10) != c.cost || (a.Header.Get("Sluice-Degraded") != "") != c.degraded || a.Header.Get("X-Sluice-Cost") != "" {
			t.Errorf("%s: %d %v, event %+v", name, a.StatusCode, a.Header, e)
		}
		var pending []int64
		for _, charge := range e.Charges {
			if charge.Pending {
				pending = append(pending, charge.Amount)
			}
		}
		slices.SortFunc(pending, func(a, b int64) int { return int(b - a) })
		if book.total() != c.owed || !slices.Equal(pending, c.pending) {
			t.Errorf("%s: owed %v, want %d; the event tells %v", name, book.costs, c.owed, e.Charges)
		}
		if got := testutil.ToFloat64(s.gate.metrics.charging.Corrections[c.result]); got != 1 {
			t.Errorf("%s: %v are %s", name, got, charge.CorrectionNames[c.result])
		}
	}
}

// A request that was let pass in July and answered in August is July's.
func TestCorrectionsBelongToTheTimeOfTheRequest(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 31, 23, 59, 59, 0, time.UTC)
	now := at
	s := costlyStand(t, func() time.Time { return now })
	slow := &turningStore{Store: limit.NewModel(func() time.Time { return now }), after: func() { now = at.Add(2 * time.Second) }}
	s.gate.charger.Store = slow
	s.putRule(ruleJSON("month", "tenant", "units", tenQuota, ""))
	s.get("/demo/export"+costs("1"), acme...)
	e := s.event()
	if len(e.Charges) != 1 || e.Charges[0].Amount != 1 || e.Charges[0].Consumed != 4 || e.Charges[0].Refunded != 3 || e.Charges[0].Counter[len(e.Charges[0].Counter)-6:] != "202607" {
		t.Errorf("charges %+v", e.Charges)
	}
}

// turningStore lets time go by after its first answer.
type turningStore struct {
	limit.Store
	after func()
}

func (s *turningStore) Decide(ctx context.Context, counters []limit.Counter) (limit.Decision, error) {
	d, err := s.Store.Decide(ctx, counters)
	s.after()
	return d, err
}
