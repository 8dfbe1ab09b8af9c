package gateway

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/fleet"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/local"
	"github.com/sluice-platform/sluice/schemas/events/gateways"
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
		"restoring": func(s *stand, f *failingStore) { s.gate.store = withoutQuotas{f.Store} },
		"broken":    func(_ *stand, f *failingStore) { f.broken = "quota" },
	} {
		at := noon
		s, store, book := lossy(t, fleet.Place{Live: 1}, standOptions{now: func() time.Time { return at }})
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
		s, store, book := lossy(t, fleet.Place{Live: 1}, standOptions{now: func() time.Time { return noon.Add(time.Minute) }})
		reached := false
		s.gate.shares = local.New(local.Options{Reached: func() bool { return reached }, Now: s.gate.now})
		s.putRule(ruleJSON("ten", "tenant", "calls", limits, `,"onStoreLoss":"local"`))
		store.down = limit.ErrUnavailable
		a := s.get("/demo/x", acme...)
		if e := s.event(); a.StatusCode != 503 || e.Reason != reasonStoreUnavailable || a.Header.Get("Retry-After") == "" || book.n != 0 {
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

// owed is a stand whose rule is local, with what it owes.
func owed(t *testing.T, others *bool) (*stand, *failingStore, *ledger, *time.Time) {
	t.Helper()
	at := noon
	now := func() time.Time { return at }
	s, store, _ := lossy(t, fleet.Place{Live: 2, Rank: 0}, standOptions{now: now})
	book := new(ledger)
	s.gate.owing = &owing{now: now, away: func() bool { return store.down != nil }, owed: func() bool { return *others }, journal: book}
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

// Until the store has been told what passed by shares, nobody gets more of it
// than a share: not from this gateway, and for a while not while others owe.
func TestDebtsHoldTheShares(t *testing.T) {
	t.Parallel()
	others := false
	s, store, book, at := owed(t, &others)
	store.down, book.mark = limit.ErrUnavailable, 1
	if n := passes(t, s); n != 5 || !s.gate.owing.tells() {
		t.Fatalf("%d passed by a share of 5", n)
	}
	store.down = nil
	*at = at.Add(time.Hour)
	if n := passes(t, s); n != 0 || !s.gate.owing.tells() {
		t.Errorf("%d passed before the debt was settled", n)
	}
	book.settled = 1
	if s.gate.owing.tells() {
		t.Error("others hold for nothing")
	}
	others = true
	if n := passes(t, s); n != 0 {
		t.Errorf("%d passed while another owes", n)
	}
	*at = at.Add(gateways.GoneAfter)
	if n := passes(t, s); n != 10 { // the model was never told of the five
		t.Errorf("%d passed though another has owed for too long", n)
	}
}

// The gateway that comes back first cannot have heard yet what others owe.
func TestSharesAreHeldForAMomentAfterAnOutage(t *testing.T) {
	t.Parallel()
	others := false
	s, store, _, at := owed(t, &others)
	store.down = limit.ErrUnavailable
	s.gate.owing.isAway()
	store.down = nil
	if n := passes(t, s); n != 5 {
		t.Errorf("%d passed, of a share of 5", n)
	}
	*at = at.Add(holdAtLeast)
	if n := passes(t, s); n != 5 {
		t.Errorf("%d passed of the 5 that the store had left", n)
	}
}

// What a request has had of a share that the store then denies, it gives back.
func TestHeldShareIsGivenBackWhereTheStoreDenies(t *testing.T) {
	t.Parallel()
	others := true
	s, _, _, at := owed(t, &others)
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
