package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// Harness is what an implementation gives the suite.
type Harness struct {
	// New returns an empty store of the test's own.
	New func(t *testing.T) usagestore.Store
	// Refresh makes what was put visible to Search.
	Refresh func(t *testing.T, s usagestore.Store)
}

// Noon is when the suite's events begin.
var Noon = time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)

// Event returns a whole event: the n-th of a tenant, n seconds after Noon.
func Event(tenant string, n int) usage.Event {
	limit := int64(1000)
	return usage.Event{
		ID: fmt.Sprintf("0198-%06d", n), TS: Noon.Add(time.Duration(n) * time.Second), TenantID: tenant, UserID: "u1",
		ApplicationID: "app", APIKeyHash: "sha256:9f2a", Service: "payments", Endpoint: "/v1/pay", Method: "POST",
		Decision: usage.DecisionAllow, StatusCode: 200, RuleID: "r1", Algo: usage.AlgoRenewingQuota, Cost: 1, LatencyMs: 0.31,
		Charges: []usage.Charge{{Counter: "q:tenant:" + tenant, Metric: "pay", Amount: 1, Consumed: int64(n) + 1, Limit: &limit}},
		Gateway: "gw-1",
	}
}

// Run holds the store against its contract.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		"an event comes back as it was":            roundTrip,
		"a replay adds nothing":                    replay,
		"same id of two tenants is two events":     twoTenants,
		"filters, order and cursors":               search,
		"a cursor that is none is a bad query":     badCursor,
		"an unknown id is not found":               notFound,
		"a refused event keeps no other out":       refused,
		"sums by counter":                          totals,
		"sums by counter and day":                  days,
		"a span of days that is none is refused":   badDays,
		"prune takes whole days":                   prune,
		"a store without events answers":           empty,
		"a cancelled context is an error, no loss": cancelled,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, h) })
	}
}

func (h Harness) put(t *testing.T, s usagestore.Store, events ...usage.Event) []usagestore.Result {
	t.Helper()
	results, err := s.Put(t.Context(), events)
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	if len(results) != len(events) {
		t.Fatalf("%d results of %d events", len(results), len(events))
	}
	h.Refresh(t, s)
	return results
}

func (h Harness) putAll(t *testing.T, s usagestore.Store, events ...usage.Event) {
	t.Helper()
	for i, r := range h.put(t, s, events...) {
		if r.Err != nil {
			t.Fatalf("event %d: %v", i, r.Err)
		}
	}
}

func find(t *testing.T, s usagestore.Store, q usagestore.Query) usagestore.Page {
	t.Helper()
	page, err := s.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("search %+v: %v", q, err)
	}
	return page
}

func ids(events []usage.Event) (out []string) {
	for _, e := range events {
		out = append(out, e.TenantID+"/"+e.ID)
	}
	return out
}

func roundTrip(t *testing.T, h Harness) {
	s := h.New(t)
	full, bare := Event("acme", 1), usage.Event{ID: "bare", TS: Noon, Service: "s", Endpoint: "/", Method: "GET", Decision: "ALLOW", LatencyMs: 2, Gateway: "g"}
	odd := Event("ac{m}e:%/\"'\\ é", 2)
	odd.LatencyMs = 12.75
	h.putAll(t, s, full, bare, odd)
	for _, want := range []usage.Event{full, bare, odd} {
		got, err := s.Get(t.Context(), want.ID)
		if err != nil {
			t.Fatalf("get %s: %v", want.ID, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("event changed (-put +got):\n%s", diff)
		}
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
}

func replay(t *testing.T, h Harness) {
	s := h.New(t)
	events := []usage.Event{Event("acme", 1), Event("acme", 2)}
	h.putAll(t, s, events...)
	h.putAll(t, s, append(events, Event("acme", 3), Event("acme", 3))...)
	if got := find(t, s, usagestore.Query{}).Events; len(got) != 3 {
		t.Fatalf("%d events after a replay: %v", len(got), ids(got))
	}
}

func twoTenants(t *testing.T, h Harness) {
	s := h.New(t)
	h.putAll(t, s, Event("acme", 1), Event("globex", 1), Event("", 1))
	got := find(t, s, usagestore.Query{})
	if diff := cmp.Diff([]string{"globex/0198-000001", "acme/0198-000001", "/0198-000001"}, ids(got.Events)); diff != "" {
		t.Fatal(diff)
	}
	if e, err := s.Get(t.Context(), "0198-000001"); err != nil || e.ID != "0198-000001" {
		t.Fatalf("get = %+v, %v", e, err)
	}
}

func badCursor(t *testing.T, h Harness) {
	s := h.New(t)
	for _, cursor := range []string{"%%", "bm90aGluZw", "e30"} {
		if _, err := s.Search(t.Context(), usagestore.Query{Cursor: cursor}); !errors.Is(err, usagestore.ErrBadQuery) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

func notFound(t *testing.T, h Harness) {
	s := h.New(t)
	h.putAll(t, s, Event("acme", 1))
	if _, err := s.Get(t.Context(), "nobody"); !errors.Is(err, usagestore.ErrNotFound) {
		t.Fatalf("get = %v", err)
	}
}

func empty(t *testing.T, h Harness) {
	s := h.New(t)
	if got := find(t, s, usagestore.Query{TenantID: "acme"}); len(got.Events) != 0 || got.Next != "" {
		t.Fatalf("page %+v", got)
	}
	if _, err := s.Get(t.Context(), "x"); !errors.Is(err, usagestore.ErrNotFound) {
		t.Fatalf("get = %v", err)
	}
	if page, err := s.Totals(t.Context(), usagestore.TotalsQuery{}); len(page.Sums) != 0 || page.Next != "" || err != nil {
		t.Fatalf("totals = %+v, %v", page, err)
	}
	if n, err := s.Prune(t.Context(), 1, Noon); n != 0 || err != nil {
		t.Fatalf("prune = %d, %v", n, err)
	}
	if results, err := s.Put(t.Context(), nil); len(results) != 0 || err != nil {
		t.Fatalf("put of nothing = %v, %v", results, err)
	}
}

// refused puts a status code that no server gives: both stores take 16 bits.
func refused(t *testing.T, h Harness) {
	s := h.New(t)
	var events []usage.Event
	for n := range 20 {
		e := Event("acme", n)
		if n == 7 || n == 8 || n == 19 {
			e.StatusCode = 70000
		}
		events = append(events, e)
	}
	for n, r := range h.put(t, s, events...) {
		bad := events[n].StatusCode == 70000
		if bad != (r.Err != nil) || bad && (!r.Err.Permanent || r.Err.Kind == "" || r.Err.Detail == "") {
			t.Errorf("event %d: %+v", n, r.Err)
		}
	}
	if got := find(t, s, usagestore.Query{}).Events; len(got) != 17 {
		t.Fatalf("%d of 17 good events stored", len(got))
	}
}

func prune(t *testing.T, h Harness) {
	s := h.New(t)
	day := 24 * 3600
	h.putAll(t, s, Event("acme", 0), Event("acme", -day), Event("acme", -2*day), Event("acme", -3*day), Event("acme", -3*day-1))
	n, err := s.Prune(t.Context(), 2, Noon.Add(11*time.Hour))
	if err != nil || n < 1 {
		t.Fatalf("prune = %d, %v", n, err)
	}
	h.Refresh(t, s)
	if got := find(t, s, usagestore.Query{}).Events; len(got) != 3 {
		t.Fatalf("kept %v", ids(got))
	}
	if n, err := s.Prune(t.Context(), 2, Noon); n != 0 || err != nil {
		t.Fatalf("second prune = %d, %v", n, err)
	}
}

func cancelled(t *testing.T, h Harness) {
	s := h.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Put(ctx, []usage.Event{Event("acme", 1)}); err == nil {
		t.Fatal("put with a cancelled context claims to know")
	}
	h.putAll(t, s, Event("acme", 1))
}
