//go:build integration

package keeper

import (
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// A refund that its gateway had only journaled has no totals in its event, and
// may be the last that is ever heard of its counter: it is checkpointed all the
// same, once it is settled, and outlives a loss of Redis.
func TestARefundThatWasOwedIsCheckpointed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.newKeeper(20 * time.Millisecond)
	b.start(s)
	e := charge(0, 8) // 8 consumed, none refunded
	limit := int64(1008)
	e.Charges = append(e.Charges, usage.Charge{Counter: counterOf(0), Metric: "reports", Amount: -1, Limit: &limit, Pending: true})
	b.produce(e)
	refunded := func(n int64) func() bool {
		return func() bool { r, ok := b.rows()[counterOf(0)]; return ok && r.Consumed == 8 && r.Refunded == n }
	}
	servertest.Eventually(t, patience, "the charge", refunded(0))
	consumedKey, refundedKey, _, _ := redisstore.Keys(b.prefix, counterOf(0))
	for key, n := range map[string]int{consumedKey: 8, refundedKey: 1} { // the gateway's journal is settled
		if err := b.redis.Set(t.Context(), key, n, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	servertest.Eventually(t, patience, "the refund", refunded(1))
	if err := b.redis.Del(t.Context(), consumedKey, refundedKey).Err(); err != nil {
		t.Fatal(err)
	}
	b.produce(charge(1, 1))
	servertest.Eventually(t, patience, "another checkpoint", func() bool { _, ok := b.rows()[counterOf(1)]; return ok })
	if !refunded(1)() {
		t.Fatalf("a lost counter lowered its checkpoint: %+v", b.rows()[counterOf(0)])
	}
}

// What was owed is looked at until it must have been settled, and then no more.
func TestWhatIsOwedIsForgotten(t *testing.T) {
	t.Parallel()
	f := newFold()
	e := charge(0, 1)
	e.Charges[0].Pending = true
	f.event(e, noon)
	first := f.owing()
	f.looked(first, noon.Add(owedFor))
	if len(f.owing()) != 1 {
		t.Fatal("forgotten too soon")
	}
	f.event(e, noon.Add(time.Minute)) // owed again meanwhile
	f.looked(first, noon.Add(owedFor+time.Second))
	if len(f.owing()) != 1 {
		t.Fatal("what was owed since is forgotten with it")
	}
	f.looked(f.owing(), noon.Add(owedFor+2*time.Minute))
	if len(f.owing()) != 0 {
		t.Fatal("looked at for ever")
	}
}
