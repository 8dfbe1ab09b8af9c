package gateway

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/membership"
	"github.com/sluice-platform/sluice/services/gateway/internal/share"
)

// withoutQuotas is a store that is restoring its quotas.
type withoutQuotas struct{ limit.Store }

func (s withoutQuotas) Decide(ctx context.Context, counters []limit.Counter) (limit.Decision, error) {
	if slices.ContainsFunc(counters, func(c limit.Counter) bool { return c.Algorithm.Quota() }) {
		return limit.Decision{}, errors.Join(limit.ErrUnavailable, limit.ErrRestoring)
	}
	return s.Store.Decide(ctx, counters)
}

// A request that a rate denies takes nothing of the share of a quota that is
// being restored, or whose counter is broken; nor is it told to wait for the
// quota's period.
func TestWhatIsDeniedTakesNoShare(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*stand, *failingStore){
		"restoring": func(s *stand, f *failingStore) { s.gate.charger.Store = withoutQuotas{f.Store} },
		"broken":    func(_ *stand, f *failingStore) { f.broken = "quota" },
	} {
		at := noon
		s, store, book := lossy(t, membership.Position{Live: 1}, standOptions{now: func() time.Time { return at }})
		s.putRule(ruleJSON("month", "tenant", "units", tenQuota, `,"onStoreLoss":"local"`))
		s.putRule(ruleJSON("pace", "tenant", "calls", `{"algorithm":"gcra","limit":1,"window":"1s","burst":1}`, ""))
		lose(s, store)
		passed := 0
		for range 15 {
			at = at.Add(time.Second)
			for range 20 {
				if s.get("/demo/x", acme...).StatusCode == 200 {
					passed++
				}
			}
		}
		a := s.get("/demo/x", acme...)
		if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); passed != 10 || a.StatusCode != 429 || err != nil || wait > 10 {
			t.Errorf("%s: %d passed, then %d, wait %s", name, passed, a.StatusCode, a.Header.Get("Retry-After"))
		}
		if name == "restoring" && book.total() != 10 {
			t.Errorf("%d are owed", book.total())
		}
	}
}

// A process that never reached the store does not know what was left, nor what
// the one before it gave out.
func TestNothingIsSharedBeforeTheStoreWasReached(t *testing.T) {
	t.Parallel()
	for _, limits := range []string{tenQuota, tenOnce} {
		s, store, book := lossy(t, membership.Position{Live: 1}, standOptions{now: func() time.Time { return noon.Add(time.Minute) }})
		reached := false
		s.gate.charger.Shares = share.New(share.Options{Reached: func() bool { return reached }, Now: s.gate.now})
		s.putRule(ruleJSON("ten", "tenant", "calls", limits, `,"onStoreLoss":"local"`))
		store.down = limit.ErrUnavailable
		a := s.get("/demo/x", acme...)
		if e := s.event(); a.StatusCode != 503 || e.Reason != charge.StoreUnavailable || a.Header.Get("Retry-After") == "" || book.n != 0 {
			t.Errorf("%s: %d, event %+v", limits, a.StatusCode, e)
		}
		reached, store.down = true, nil
		if a := s.get("/demo/x", acme...); a.StatusCode != 200 {
			t.Errorf("%s: %d with the store", limits, a.StatusCode)
		}
	}
}

// ledger is a journal that settles when it is told to.
type ledger struct{ mark, settled uint64 }

func (l *ledger) Mark() uint64             { return l.mark }
func (l *ledger) Settled(mark uint64) bool { return l.settled >= mark }

// owed is a stand whose rule is local, with a journal.
func owed(t *testing.T) (*stand, *failingStore, *ledger, *time.Time) {
	t.Helper()
	at := noon
	s, store, _ := lossy(t, membership.Position{Live: 2, Rank: 0}, standOptions{now: func() time.Time { return at }})
	book := new(ledger)
	s.gate.charger.Unsettled = &charge.Unsettled{Away: func() bool { return store.down != nil }}
	s.gate.charger.Unsettled.Begin(book, false)
	s.putRule(ruleJSON("ten", "tenant", "calls", tenQuota, `,"onStoreLoss":"local"`))
	return s, store, book, &at
}

// passes is how many of twenty requests pass; the others are 429.
func passes(t *testing.T, s *stand) (n int) {
	t.Helper()
	for range 20 {
		switch a := s.get("/demo/x", acme...); a.StatusCode {
		case 200:
			n++
		case 429:
		default:
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	return n
}

// Until the store has been charged what passed in an outage, a local rule goes
// by this gateway's share. What passes by it meanwhile is not waited for.
func TestDebtsHoldTheShares(t *testing.T) {
	t.Parallel()
	s, store, book, at := owed(t)
	store.down, book.mark = limit.ErrUnavailable, 1
	for range 3 {
		if a := s.get("/demo/x", acme...); a.StatusCode != 200 {
			t.Fatalf("%d by a share of 5", a.StatusCode)
		}
	}
	store.down, book.mark = nil, 2
	*at = at.Add(time.Hour)
	if n := passes(t, s); n != 2 {
		t.Errorf("%d passed by the 2 left of the share, before the journal was settled", n)
	}
	book.settled = 1
	if n := passes(t, s); n != 10 { // the model was never told of the others
		t.Errorf("%d passed once the outage was settled", n)
	}
}

// A rule that is not local, and other kinds of counters, do not wait.
func TestDebtsHoldWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	s, store, book, _ := owed(t)
	s.putRule(ruleJSON("pace", "tenant", "paced", `{"algorithm":"fixedWindow","limit":100,"window":"1h"}`, `,"onStoreLoss":"local"`))
	s.gate.charger.Store = withoutQuotas{store.Store}
	book.mark = 1
	s.get("/demo/x", acme...)
	s.gate.charger.Store = store
	s.events()
	before := store.calls.Load()
	if a, e := s.get("/demo/x", acme...), s.event(); a.StatusCode != 200 || a.Header.Get("Sluice-Degraded") == "" || len(e.Charges) != 1 || !e.Charges[0].Pending {
		t.Errorf("%d %v, event %+v: the quota does not wait", a.StatusCode, a.Header, e)
	}
	if store.calls.Load() != before+1 {
		t.Error("the rate waits with the quota")
	}
}

// What a request has had of a share that the store then denies, it gives back.
func TestShareIsGivenBackWhereTheStoreDenies(t *testing.T) {
	t.Parallel()
	s, _, book, at := owed(t)
	book.mark = 1
	s.gate.charger.Unsettled.Begin(book, true)
	s.putRule(ruleJSON("pace", "tenant", "paced", `{"algorithm":"gcra","limit":1,"window":"1s","burst":1}`, ""))
	passed := 0
	for range 8 {
		*at = at.Add(time.Second)
		passed += passes(t, s)
	}
	if passed != 5 {
		t.Errorf("%d passed, of a share of 5", passed)
	}
}
