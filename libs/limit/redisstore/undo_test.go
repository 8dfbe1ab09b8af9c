package redisstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/sluice-platform/sluice/libs/breaker"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// owing is a store behind a proxy whose debts are written down.
type owing struct {
	*Store
	proxy  *proxy
	server *miniredis.Miniredis
	direct *Store

	mu   sync.Mutex
	owed []limit.Counter
}

func newOwing(t *testing.T, owe func(at time.Time, counters []limit.Counter)) *owing {
	t.Helper()
	o := &owing{server: miniredis.RunT(t)}
	if owe == nil {
		owe = func(_ time.Time, counters []limit.Counter) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.owed = append(o.owed, counters...)
		}
	}
	o.proxy = newProxy(t, o.server.Addr())
	o.Store = newStore(t, newClient(t, o.proxy.addr), Options{
		Budget: 100 * time.Millisecond, CallTimeout: 200 * time.Millisecond, Breaker: breaker.Options{Silence: generous, Errors: 1000}, Owe: owe,
	})
	o.direct = newStore(t, newClient(t, o.server.Addr()), Options{})
	servertest.Eventually(t, 60*time.Second, "the first decision", func() bool {
		_, err := o.Decide(t.Context(), []limit.Counter{fixed(1000)})
		return err == nil
	})
	return o
}

// used are the units that count of a rate and a quota.
func (o *owing) used(t *testing.T) (rate, quotas int64) {
	t.Helper()
	d, err := o.direct.Decide(t.Context(), []limit.Counter{withCost(gcra(100, 100), 0), withCost(quota(100), 0)})
	if err != nil {
		t.Fatal(err)
	}
	return 100 - d.States[0].Remaining, d.States[1].Consumed - d.States[1].Refunded
}

func (o *owing) owes() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	var sum int64
	for _, c := range o.owed {
		sum += c.Cost
	}
	return sum
}

// Redis is cut off between a charge and its give-back: what is owed can be settled
// once Redis is there again, and once only.
func TestLateChargeIsGivenBackAfterAnOutage(t *testing.T) {
	t.Parallel()
	o := newOwing(t, nil)
	open := o.proxy.delay()
	defer open() // or the proxy would not end
	if _, err := o.Decide(t.Context(), []limit.Counter{gcra(100, 100), quota(100)}); !errors.Is(err, limit.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	if _, quotas := o.used(t); quotas != 1 {
		t.Fatalf("%d units are charged, want 1", quotas)
	}
	o.proxy.deaf.Store(true)
	open()
	servertest.Eventually(t, 30*time.Second, "the give-back to be owed", func() bool { return o.owes() == -2 })
	settle := func() bool {
		_, err := o.Settle(t.Context(), limit.Once{ID: "gw", Seq: 2}, o.owed)
		return err == nil
	}
	if settle() {
		t.Fatal("settled while Redis is cut off")
	}
	if _, quotas := o.used(t); quotas != 1 {
		t.Errorf("%d units are charged while Redis is cut off", quotas)
	}
	o.proxy.deaf.Store(false)
	servertest.Eventually(t, 30*time.Second, "the give-back", settle)
	if !settle() {
		t.Error("a repetition is not answered")
	}
	if _, quotas := o.used(t); quotas != 0 || o.Stats().Undone != 1 {
		t.Errorf("%d units are charged in the end, %+v", quotas, o.Stats())
	}
}

// What another slot denied is given back at once; where that cannot be, or
// nobody knows whether it was, it is owed exactly when it was not done.
func TestGiveBackIsOwedWhereItIsNotDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(o *owing) (heal func())
		owed  int64
		used  int64 // of the quota, before what is owed
		asks  bool
	}{
		"taken": {func(*owing) func() { return func() {} }, 0, 0, false},
		"refused": {func(o *owing) func() {
			o.server.SetError("OOM command not allowed when used memory > 'maxmemory'.")
			return func() { o.server.SetError("") }
		}, -2, 1, false},
		"taken, answer lost": {func(o *owing) func() {
			o.proxy.answer.Store(cutOnAnswer)
			return func() { o.proxy.answer.Store(passAnswers) }
		}, 0, 0, true},
		"call lost": {func(o *owing) func() {
			o.proxy.deaf.Store(true)
			return func() { o.proxy.deaf.Store(false) }
		}, -2, 1, true},
		"taken, answer late": {func(o *owing) func() { return o.proxy.delay() }, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOwing(t, nil)
			a := new(asking)
			counters := []limit.Counter{gcra(100, 100), quota(100)}
			a.started = o.now()
			a.layOut(o.Store, counters, guess(o.Store))
			a.ask(t.Context(), o.Store, a.parts)
			if !a.charged() {
				t.Fatal("nothing was charged")
			}
			var receipts atomic.Int64
			o.server.Server().SetPreHook(func(_ *server.Peer, cmd string, _ ...string) bool {
				if cmd == "MGET" {
					receipts.Add(1)
				}
				return false
			})
			heal := c.fault(o)
			a.giveBack(t.Context(), o.Store, &limit.Decision{States: make([]limit.State, len(counters))})
			heal()
			servertest.Eventually(t, 60*time.Second, "what is owed", func() bool { return o.owes() == c.owed })
			if c.asks {
				servertest.Eventually(t, 60*time.Second, "the receipt to be asked for", func() bool { return receipts.Load() > 0 })
			}
			a.reset(o.Store)
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			if _, quotas := o.used(t); quotas != c.used || o.owes() != c.owed {
				t.Errorf("%d units are charged, want %d; %d are owed, want %d", quotas, c.used, o.owes(), c.owed)
			}
		})
	}
}

// A store is closed right after an answer was lost: what the receipt says was
// charged is owed all the same.
func TestClosedStoreOwesWhatAReceiptTells(t *testing.T) {
	t.Parallel()
	o := newOwing(t, nil)
	o.proxy.answer.Store(cutOnAnswer)
	if _, err := o.Decide(t.Context(), []limit.Counter{quota(100)}); !errors.Is(err, limit.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	o.proxy.answer.Store(passAnswers)
	if n := o.Stats().Asking; n != 1 {
		t.Fatalf("%d receipts are asked for, want 1", n)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if st := o.Stats(); o.owes() != -1 || st.Asking != 0 || st.Unknown != 0 {
		t.Errorf("%d are owed, want -1; %+v", o.owes(), st)
	}
}
