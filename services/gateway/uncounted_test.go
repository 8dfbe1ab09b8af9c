package gateway

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge/journal"
	"github.com/sluice-platform/sluice/services/gateway/internal/membership"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
	"github.com/sluice-platform/sluice/services/gateway/internal/share"
)

// notebook keeps what is owed.
type notebook struct {
	mu    sync.Mutex
	costs map[string]int64
	n     int
}

func (b *notebook) Append(_ time.Time, counters []limit.Counter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	if b.costs == nil {
		b.costs = map[string]int64{}
	}
	for _, c := range counters {
		b.costs[c.Key] += c.Cost
	}
}

// Rules of tests with a notebook give nothing back.
func (b *notebook) End(f journal.InFlight) {
	if f != (journal.InFlight{}) {
		panic("ended")
	}
}
func (b *notebook) GiveBack(journal.InFlight, time.Time, []limit.Counter) { panic("given back") }
func (b *notebook) Begin(time.Time, []limit.Counter) journal.InFlight     { panic("begun") }

func (b *notebook) total() (sum int64) {
	for _, n := range b.costs {
		sum += n
	}
	return sum
}

// lossy is a stand whose store can be taken away.
func lossy(t *testing.T, position membership.Position, o standOptions) (*stand, *failingStore, *notebook) {
	t.Helper()
	o.trusted = []string{loopback}
	s := newStand(t, o)
	store, book := s.use(limit.NewModel(s.gate.now)), new(notebook)
	s.gate.charger.Journal = book
	s.gate.charger.Shares = share.New(share.Options{Position: func() membership.Position { return position }, Now: s.gate.now})
	return s, store, book
}

func TestShareIsOfWhatWasLeft(t *testing.T) {
	t.Parallel()
	s, store, book := lossy(t, membership.Position{Live: 2, Rank: 1}, standOptions{})
	s.putRule(ruleJSON("ten", "tenant", "calls", tenOnce, `,"onStoreLoss":"local"`))
	for range 3 {
		s.get("/demo/x", acme...)
	}
	s.events()
	store.down = limit.ErrUnavailable
	// 7 were left: 4 for the other gateway, 3 for this one.
	for i := range 5 {
		a := s.get("/demo/x", acme...)
		e := s.event()
		if want := map[bool]int{true: 200, false: 429}[i < 3]; a.StatusCode != want || e.StatusCode != want || a.Header.Get("Sluice-Degraded") != charge.LossOfStore.Degraded {
			t.Fatalf("request %d: %d %v %s", i, a.StatusCode, a.Header, a.body)
		}
		if a.Header.Get("RateLimit") == "" {
			t.Error("a share has no RateLimit")
		}
		if a.StatusCode == 429 {
			if p := a.problem(t); p.Type != reject.QuotaExceeded || !slices.Equal(p.Violated, []string{"ten"}) || a.Header.Get("Retry-After") == "" {
				t.Errorf("%v %s", a.Header, a.body)
			}
		}
	}
	if book.total() != 3 || book.n != 3 {
		t.Errorf("owed %v in %d notes, want 3", book.costs, book.n)
	}
	if n := testutil.ToFloat64(s.gate.metrics.charging.Fallback[charge.Local]); n != 5 {
		t.Errorf("%v decisions by share", n)
	}
	store.down = nil
	if a := s.get("/demo/x", acme...); a.StatusCode != 200 || a.Header.Get("Sluice-Degraded") != "" {
		t.Errorf("after the outage: %d %v", a.StatusCode, a.Header)
	}
}

// Of several policies the strictest holds.
func TestStrictestPolicyHolds(t *testing.T) {
	t.Parallel()
	const open, closed, share = `,"onStoreLoss":"open"`, `,"onStoreLoss":"closed"`, `,"onStoreLoss":"local"`
	for name, c := range map[string]struct {
		user, tenant string // the user's rule allows ten, the tenant's none by share where it is local
		status       int
		owed         int64
	}{
		"open and open":   {open, open, 200, 2},
		"open and local":  {open, share, 429, 0},
		"local and open":  {share, open, 200, 2},
		"local and local": {share, share, 429, 0},
		"closed and open": {closed, open, 503, 0},
		"closed, local":   {closed, share, 503, 0},
	} {
		// One of 1: nothing for the second of two gateways.
		s, store, book := lossy(t, membership.Position{Live: 2, Rank: 1}, standOptions{})
		s.putRule(ruleJSON("user", "user", "calls", tenOnce, c.user))
		s.putRule(ruleJSON("tenant", "tenant", "calls", strings.Replace(tenOnce, "10", "1", 1), c.tenant))
		store.down = limit.ErrUnavailable
		a := s.get("/demo/x", acme...)
		if a.StatusCode != c.status || book.total() != c.owed {
			t.Errorf("%s: %d, owed %v", name, a.StatusCode, book.costs)
		}
		if a.StatusCode != 503 && a.Header.Get("Sluice-Degraded") != charge.LossOfStore.Degraded {
			t.Errorf("%s: %v", name, a.Header)
		}
	}
}

// What passes uncounted is owed before its service sees it: whatever dies then.
func TestWhatPassesUncountedIsOwedBeforeItIsForwarded(t *testing.T) {
	t.Parallel()
	var book *notebook
	seen := make(chan int64, 1)
	var s *stand
	var store *failingStore
	s, store, book = lossy(t, membership.Position{Live: 1}, standOptions{handler: func(http.ResponseWriter, *http.Request) {
		book.mu.Lock()
		defer book.mu.Unlock()
		seen <- book.total()
	}})
	s.putRule(ruleJSON("open", "tenant", "calls", tenOnce, `,"onStoreLoss":"open"`))
	store.down = limit.ErrUnavailable
	if a := s.get("/demo/x", acme...); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if n := <-seen; n != 1 {
		t.Errorf("%d units are owed while the service works, want 1", n)
	}
	if book.total() != 1 {
		t.Errorf("%d units are owed afterwards, want 1", book.total())
	}
}

// What passes uncounted is owed with the cost its service told, and its event
// says so; what is denied, or only looked at, is not.
func TestWhatPassesUncountedIsOwed(t *testing.T) {
	t.Parallel()
	s, store, book := lossy(t, membership.Position{Live: 1}, standOptions{
		handler: func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "dear") {
				w.Header().Set("X-Cost", "5")
			}
		},
		catalog: []catalog.Service{{Name: "demo", Prefix: "/demo/", CostHeader: "X-Cost", Endpoints: []catalog.Endpoint{{Pattern: "GET /demo/free", Cost: new(int64)}}}},
	})
	s.putRule(ruleJSON("month", "tenant", "units", tenQuota, `,"onStoreLoss":"open"`))
	s.putRule(ruleJSON("shadow", "tenant", "units", tenQuota, `,"onStoreLoss":"closed","mode":"shadow"`))
	store.down = limit.ErrUnavailable
	for path, want := range map[string]int64{"/demo/x": 1, "/demo/dear": 5, "/demo/free": 0} {
		before := book.total()
		if a := s.get(path, acme...); a.StatusCode != 200 {
			t.Fatalf("%s: %d", path, a.StatusCode)
		}
		e := s.event()
		if got := book.total() - before; got != want {
			t.Errorf("%s: owed %d, want %d", path, got, want)
		}
		if want == 0 {
			if e.Charges != nil {
				t.Errorf("%s: charges %+v", path, e.Charges)
			}
			continue
		}
		if len(e.Charges) != 1 || !e.Charges[0].Pending || e.Charges[0].Amount != want || e.Charges[0].Consumed != 0 || !strings.HasSuffix(e.Charges[0].Counter, ":202607") {
			t.Errorf("%s: charges %+v", path, e.Charges)
		}
	}
	s.putRule(ruleJSON("closed", "user", "units", tenQuota, ""))
	before := book.total()
	if a := s.get("/demo/x", acme...); a.StatusCode != 503 || book.total() != before {
		t.Errorf("a denied request is owed: %d, %v", a.StatusCode, book.costs)
	}
}
