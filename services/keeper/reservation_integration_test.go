//go:build integration

package keeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// booking is a gateway that takes reservations of one quota.
type booking struct {
	*gateway
	book *reserve.Book
}

const booked = 1

func (l *loss) booking(name string, ships bool) *booking {
	l.t.Helper()
	b := &booking{gateway: &gateway{l: l, ships: ships}}
	client := l.client()
	var err error
	b.Store, err = redisstore.New(client, redisstore.Options{
		KeyPrefix: l.prefix, Name: name, Budget: time.Second, CallTimeout: 2 * time.Second,
		Report: func(ctx context.Context) error { return b.book.HandIn(ctx) },
	})
	if err != nil {
		l.t.Fatal(err)
	}
	b.book, err = reserve.New(reserve.Options{Store: b.Store, Client: client, KeyPrefix: l.prefix, Tell: func(n reserve.News) {
		var charges []usage.Charge
		for _, a := range n.Amounts {
			charges = append(charges, chargeOf(a.Units, a.State))
		}
		b.tell(n.ID, n.Record.ID, n.Tenant, n.Kept(), charges)
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	b.stop = servertest.Run(l.t, name, b.Store.Run)
	l.t.Cleanup(func() { _ = b.Store.Close() })
	return b
}

func chargeOf(units int64, st *limit.State) usage.Charge {
	if st == nil {
		return usage.Charge{Counter: counterNow(booked), Metric: "reports", Amount: units, Pending: true}
	}
	return usage.Charge{Counter: st.Key, Metric: "reports", Amount: units, Consumed: st.Consumed, Refunded: st.Refunded, Limit: &st.Limit}
}

func (b *booking) tell(id, reservation, tenant string, k reserve.Kept, charges []usage.Charge) {
	if !b.ships {
		return
	}
	state := &usage.ReservationState{Attempt: k.Attempt, State: k.Number, EndedAt: k.EndedAt, Record: string(k.Record)}
	b.l.produce(usage.Event{ID: id, TS: time.Now(), TenantID: tenant, Reservation: reservation, ReservationState: state, Charges: charges})
}

func (b *booking) reserve(id string, cost int64, ttl time.Duration) {
	b.l.t.Helper()
	c := monthly(booked, 1000)
	c.Cost = cost
	r := reserve.Record{
		ID: id, Tenant: "tenant-01", Service: "s", Endpoint: "/e", Method: "POST", Cost: cost, MaxCost: 1000,
		Charges: []reserve.Charge{{Rule: "r", Metric: "reports"}},
	}
	servertest.Eventually(b.l.t, patience, "a reservation", func() bool {
		_, err := b.book.Reserve(b.l.t.Context(), r, ttl, []limit.Counter{c}, func(m reserve.Made) {
			b.tell(reserve.ChargeID(m.Record), m.ID, m.Tenant, m.Kept(), []usage.Charge{chargeOf(cost, &m.Decision.States[0])})
		})
		return err == nil
	})
}

func (b *booking) commit(id string, cost int64) (bool, error) {
	_, repeated, err := b.book.Commit(b.l.t.Context(), reserve.Caller{Tenant: "tenant-01"}, id, cost)
	return repeated, err
}

func (l *loss) used() int64 {
	l.t.Helper()
	all, err := redisstore.ReadTotals(l.t.Context(), l.redis, l.prefix, []string{counterNow(booked)})
	if err != nil {
		l.t.Fatal(err)
	}
	return all[0].Used()
}

// lose loses everything, and waits until it is brought back.
func (l *loss) lose(s *Service) {
	l.t.Helper()
	before := l.restores(s)
	l.flush()
	servertest.Eventually(l.t, patience, "the restore", func() bool { return l.restores(s) > before })
}

// Reservations survive the loss of Redis, open and ended ones: by events, by
// checkpoints alone, by the memory of a gateway that is cut off from Kafka.
func TestReservationsSurviveTheLossOfRedis(t *testing.T) {
	t.Parallel()
	l := newLoss(t)
	s := l.newKeeper(100 * time.Millisecond)
	l.start(s)
	online, offline := l.booking("online", true), l.booking("offline", false)
	for name, g := range map[string]*booking{"on": online, "off": offline} {
		for _, what := range []string{"open", "kept", "done", "free"} {
			g.reserve(name+"-"+what, 10, time.Hour)
		}
		g.reserve(name+"-due", 10, time.Second)
		if _, err := g.commit(name+"-done", 3); err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.book.Release(t.Context(), reserve.Caller{Tenant: "tenant-01"}, name+"-free"); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.used(); n != 2*(10+10+3+10) {
		t.Fatalf("%d used before the loss", n)
	}
	l.lose(s)
	fresh := l.booking("fresh", true)
	if n := l.used(); n != 2*(10+10+3+10) {
		t.Fatalf("%d used after the loss", n)
	}
	for _, name := range []string{"on", "off"} {
		var ended *reserve.EndedError
		servertest.Eventually(t, patience, "a repeat", func() bool {
			repeated, err := fresh.commit(name+"-done", 3)
			return err == nil && repeated
		})
		if _, err := fresh.commit(name+"-done", 4); !errors.As(err, &ended) || ended.Committed != 3 {
			t.Errorf("%s-done: %v", name, err)
		}
		if _, err := fresh.commit(name+"-free", 4); !errors.As(err, &ended) || ended.State != reserve.Released {
			t.Errorf("%s-free: %v", name, err)
		}
		if repeated, err := fresh.commit(name+"-open", 4); err != nil || repeated {
			t.Errorf("%s-open: %t, %v", name, repeated, err)
		}
	}
	servertest.Eventually(t, patience, "those that are due to be given back", func() bool {
		if _, _, err := fresh.book.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l.used() == 2*(4+10+3)
	})
	// What the offline gateway alone knew of is lost with it; the rest is in
	// checkpoints.
	l.waitCommitted()
	online.stop()
	offline.stop()
	l.lose(s)
	if n := l.used(); n != 2*(4+10+3) {
		t.Fatalf("%d used after the second loss", n)
	}
	last := l.booking("last", true)
	servertest.Eventually(t, patience, "the gateway to have handed in", last.Whole)
	for id, want := range map[string]string{"on-kept": "", "on-open": "committed before, at a cost of 4", "off-open": "committed before, at a cost of 4", "on-due": "expired"} {
		_, err := last.commit(id, 5)
		if got := fmt.Sprint(err); want != "" && !strings.Contains(got, want) || want == "" && err != nil {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if n := l.used(); n != 2*(4+10+3)-5 {
		t.Errorf("%d used at last", n)
	}
}
