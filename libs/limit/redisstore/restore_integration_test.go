//go:build integration

package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// One master of a Cluster loses everything: its quotas are not charged, those of
// others are; what this store knows of its own comes back, and a slot whose
// marker alone is gone is seen too.
func TestMasterOfAClusterLosesItsQuotas(t *testing.T) {
	t.Parallel()
	c := servertest.StartRedisCluster(t)
	client := clusterClient(t, c)
	s := newStore(t, client, Options{Name: "gw"})
	servertest.Run(t, "store", s.Run)
	servertest.Eventually(t, 60*time.Second, "the store to have looked", s.Whole)
	// A counter on each of the first two masters.
	counters := make([]limit.Counter, 2)
	for i := range counters {
		counters[i] = longCounter(limit.RenewingQuota, 100)
		counters[i].Key = tagOn(i, 7) + ":t::m:quota"
		counters[i].Cost = 40
		if _, err := s.Decide(t.Context(), counters[i:i+1]); err != nil {
			t.Fatal(err)
		}
		counters[i].Cost = 1
	}
	node := newClient(t, c.Nodes[0].Addr())
	if err := node.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Decide(t.Context(), counters[:1]); !errors.Is(err, limit.ErrRestoring) {
		t.Fatalf("error %v, want ErrRestoring", err)
	}
	if _, err := s.Decide(t.Context(), counters[1:]); err != nil {
		t.Fatalf("a master that lost nothing: %v", err)
	}
	restore := func() {
		t.Helper()
		declareWhole(t, client, "")
	}
	restore()
	var st limit.State
	again := func() bool {
		d, err := s.Decide(t.Context(), counters[:1])
		if err == nil {
			st = d.States[0]
		}
		return err == nil
	}
	servertest.Eventually(t, 20*time.Second, "the quota to be charged again", again)
	if st.Consumed != 41 {
		t.Errorf("%+v, want 41 consumed", st)
	}
	marker := epoch.Key("", true, epoch.SlotOf(counters[0].Key))
	if err := client.Del(t.Context(), marker).Err(); err != nil {
		t.Fatal(err)
	}
	if again() {
		t.Error("charged in a slot without a marker")
	}
	restore()
	servertest.Eventually(t, 20*time.Second, "the slot to be charged again", again)
	if st.Consumed != 42 {
		t.Errorf("%+v, want 42 consumed", st)
	}
}
