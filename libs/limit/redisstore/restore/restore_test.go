package restore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore/restoretest"
	"github.com/sluice-platform/sluice/libs/servertest"
)

var noon = time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)

// bench is a store on a server inside this process.
type bench struct {
	*redisstore.Store
	t      *testing.T
	server *miniredis.Miniredis
	client redis.UniversalClient
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, server: miniredis.RunT(t)}
	b.server.SetTime(noon)
	o := &redis.UniversalOptions{Addrs: []string{b.server.Addr()}}
	redisstore.Configure(o, 10*time.Second)
	b.client = redis.NewUniversalClient(o)
	restoretest.Whole(t, b.client, "p:")
	s, err := redisstore.New(b.client, redisstore.Options{KeyPrefix: "p:", Budget: 10 * time.Second, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	b.Store = s
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), b.client.Close()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func monthly(cost int64) limit.Counter {
	return limit.Counter{Key: "{t:a}:t::m:quota", Algorithm: limit.RenewingQuota, Limit: 100, Cost: cost}
}

func (b *bench) decide(counters ...limit.Counter) []limit.State {
	b.t.Helper()
	d, err := b.Decide(b.t.Context(), counters)
	if err != nil {
		b.t.Fatal(err)
	}
	return d.States
}

// Six restores give what one does, whoever reports what, and newer use stays.
func TestSixRestoresGiveWhatOneDoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := restore.New(b.client, "p:")
	known := []restore.Known{
		{Counter: "{t:a}:t::m:quota:month:202607", Totals: redisstore.Totals{Consumed: 30, Refunded: 2}, Expires: noon.Add(40 * 24 * time.Hour)},
		{Counter: "{t:a}:t::w:quota:prepaid", Totals: redisstore.Totals{Consumed: 9, Refunded: 1, Forfeited: 3}},
		{Counter: "{t:a}:t::d:quota:day:20260723", Totals: redisstore.Totals{Consumed: 5, Carried: 7}, Rolls: true, Expires: noon.Add(96 * time.Hour)},
	}
	prepaid := limit.Counter{Key: "{t:a}:t::w:quota:prepaid", Algorithm: limit.PrepaidQuota, Granted: 100}
	for i := range 6 {
		if _, err := r.Raise(t.Context(), known); err != nil {
			t.Fatal(err)
		}
		st := b.decide(monthly(0), prepaid)
		if st[0].Consumed != 30+int64(i) || st[0].Refunded != 2 || st[1].Consumed != 9 || st[1].Refunded != 1 || st[1].Forfeited != 3 {
			t.Fatalf("restore %d: %+v", i, st)
		}
		b.decide(monthly(1)) // traffic meanwhile is kept
	}
	if carried, err := b.server.Get("p:{t:a}:t::d:quota:day:20260723:o"); err != nil || carried != "7" {
		t.Errorf("carried %q, %v", carried, err)
	}
	if b.server.TTL("p:{t:a}:t::m:quota:month:202607:r") == 0 || b.server.TTL("p:{t:a}:t::w:quota:prepaid:c") != 0 {
		t.Error("a period's key without expiry, or a wallet's with one")
	}
}

// A restore is sealed for the epoch it was begun for, and for no other.
func TestSealOfAnotherEpochFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	r := restore.New(b.client, "p:")
	begin := func() restore.Process {
		t.Helper()
		all, err := r.Look(ctx, true)
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Begin(ctx, all[0])
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	b.server.FlushAll()
	first := begin()
	if twin := begin(); twin.Epoch != first.Epoch {
		t.Fatalf("another keeper does not join: %s, %s", first.Epoch, twin.Epoch)
	}
	b.server.FlushAll()
	if err := r.Seal(ctx, first); err == nil {
		t.Fatal("sealed after its data was lost again")
	}
	second := begin()
	if err := r.Seal(ctx, first); err == nil || second.Epoch == first.Epoch {
		t.Fatal("sealed in the middle of another restore")
	}
	if _, err := b.Decide(ctx, []limit.Counter{monthly(1)}); !errors.Is(err, limit.ErrRestoring) {
		t.Fatalf("error %v, want ErrRestoring", err)
	}
	for range 2 { // a repeat does no harm
		if err := r.Seal(ctx, second); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := r.Look(ctx, true); err != nil || !all[0].Whole || all[0].Epoch != second.Epoch {
		t.Fatalf("%+v, %v", all, err)
	}
	b.decide(monthly(1))
}

// A gateway is listed with the epoch it has reported to, until it ends.
func TestGatewaysAreListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := restore.New(b.client, "p:")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	gateways := func() []restore.Gateway {
		t.Helper()
		all, err := r.Look(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		found, _, err := r.Gateways(t.Context(), all[0])
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 1 && found[0].Epoch != all[0].Epoch {
			return nil // not reported yet
		}
		return found
	}
	servertest.Eventually(t, 30*time.Second, "the gateway to be listed", func() bool { return len(gateways()) > 0 })
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if left := gateways(); len(left) != 0 {
		t.Fatalf("%+v after it left", left)
	}
}
