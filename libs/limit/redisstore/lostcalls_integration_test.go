//go:build integration

package redisstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// A master of a Cluster is lost with the answer to a call, of which the totals
// hold the units: they are found in its slots, and no other's are looked at.
func TestLostCallsOfAMasterOfACluster(t *testing.T) {
	t.Parallel()
	c := servertest.StartRedisCluster(t)
	client := clusterClient(t, c)
	var gates []*Store
	for _, name := range []string{"a", "b"} {
		s := newStore(t, client, Options{Name: name})
		servertest.Run(t, name, s.Run)
		servertest.Eventually(t, 10*time.Second, "the store to have looked", s.Whole)
		gates = append(gates, s)
	}
	a, b := gates[0], gates[1]
	met := time.Now()
	charge := func(s *Store, counter limit.Counter, cost int64) {
		t.Helper()
		counter.Cost = cost
		servertest.Eventually(t, 10*time.Second, "a charge", func() bool {
			_, err := s.Decide(t.Context(), []limit.Counter{counter})
			if err != nil && !errors.Is(err, limit.ErrUnavailable) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	counters := make([]limit.Counter, 2) // on each of the first two masters
	for i := range counters {
		counters[i] = longCounter(limit.RenewingQuota, 100)
		counters[i].Key = tagOn(i, 7) + ":t::m:quota"
	}
	servertest.Eventually(t, 20*time.Second, "the gateways to have met", func() bool { return time.Since(met) > leftFor+time.Second })
	for i := range counters {
		charge(a, counters[i], 5)
		charge(b, counters[i], 5)
	}
	charged := time.Now() // by Redis's clock as well: it is this machine's
	servertest.Eventually(t, 10*time.Second, "time to pass", func() bool { return a.clock.guess().Sub(charged) > 2*lossSlack })
	// What nobody is told of another one does in its stead.
	other := newStore(t, client, Options{})
	for i := range counters {
		slot := slotOf(counters[i].Key)
		since := a.clock.guess().Add(-lossSlack).UnixMicro()
		charge(other, counters[i], 3)
		key := counters[i].Key + ":" + counters[i].Calendar.At(a.Clock()).Name() + suffixConsumed
		a.losses.add([]*loss{{
			marker: a.servers.marker(slot), since: since, slot: slot,
			proof: proof{key: "{" + tagOf(counters[i].Key) + "}:nothing", number: 1, place: onGuard},
			units: []lossUnits{{key: key, Units: Units{Consumed: 3}}},
		}})
		charge(b, counters[i], 2)
	}
	if err := newClient(t, c.Nodes[0].Addr()).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	r := NewRestorer(client, "")
	all, err := r.Look(t.Context(), true)
	i := slices.IndexFunc(all, func(p Process) bool { return !p.Whole })
	if err != nil || i < 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	p, err := r.Begin(t.Context(), all[i])
	if err != nil {
		t.Fatal(err)
	}
	var lost LostCalls
	servertest.Eventually(t, 10*time.Second, "the gateways' accounts", func() bool {
		lost, err = r.LostCalls(t.Context(), p)
		return err == nil && lost.Heard([]string{"a", "b"})
	})
	placed, err := r.Place(t.Context(), p, lost, Placing{
		Expires: func(string) time.Time { return time.Time{} },
		Keep:    func(context.Context, Known) error { return nil },
	})
	if err != nil || len(placed) != 1 || !placed[0].Known || placed[0].Found != 3 {
		t.Fatalf("%+v, %v", placed, err)
	}
	if err := r.Seal(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	charge(a, counters[0], 1)
	for i, want := range []int64{13, 15} { // nothing was lost of the second
		counters[i].Cost = 0
		d, err := a.Decide(t.Context(), counters[i:i+1])
		if err != nil || d.States[0].Consumed-d.States[0].Refunded != want {
			t.Errorf("counter %d: %+v, %v, want %d used", i, d.States, err, want)
		}
	}
}
