//go:build integration

package keeper

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// loseWith loses a call that Redis hears and that is not answered, together with
// Redis, once b has seen what it charged.
func (l *deafLoss) loseWith(do func() error, tenant int, want int64, keepers ...*Service) {
	l.t.Helper()
	heal := l.drop("downstream")
	done := make(chan error, 1)
	go func() { done <- do() }()
	servertest.Eventually(l.t, patience, "redis to have charged what was sent", func() bool { return l.net(tenant) == want })
	l.b.charge(costing(tenant, 2)[0]) // b sees what a's call left
	if err := <-done; err == nil {
		l.t.Fatal("answered")
	}
	before := 0.0
	for _, s := range keepers {
		before += testutil.ToFloat64(s.metrics.restores)
	}
	l.flush()
	heal()
	l.awaitRestore(before, keepers...)
}

func (l *deafLoss) awaitRestore(before float64, keepers ...*Service) {
	l.t.Helper()
	servertest.Eventually(l.t, patience, "the restore", func() bool {
		n := 0.0
		for _, s := range keepers {
			n += testutil.ToFloat64(s.metrics.restores)
		}
		return n > before
	})
}

// A second keeper that is slower than the first comes to step 5 once the first has
// sealed, and gateways have charged since: it does not take theirs for lost ones.
func TestALateKeeperTakesOutNothing(t *testing.T) {
	t.Parallel()
	l := newDeafLoss(t)
	fast, slow := l.newKeeper(100*time.Millisecond), l.newKeeper(100*time.Millisecond)
	l.start(fast)
	l.awaitAcquainted()
	l.a.charge(costing(1, 5)[0])
	l.b.charge(costing(1, 5)[0])
	l.awaitRest()
	l.loseWith(func() error { return l.lost(costing(1, 3)) }, 1, 13, fast)
	l.equal("after the restore", map[int]int64{1: 12})
	l.b.charge(costing(1, 4)[0]) // admitted: 16
	l.equal("after a charge", map[int]int64{1: 16})
	all, err := slow.restore.redis.Look(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	// It began the same restore, has waited for the gateways and read usage.v1, and goes on only now.
	if err := slow.restore.settleLost(t.Context(), all[0], []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	l.equal("after the slow keeper's step 5", map[int]int64{1: 16})
}

// A refund that is lost with Redis, of which it is not known whether the totals
// hold it, is sent once more, and is not given back twice.
func TestALostRefundOfWhichNobodyKnowsIsGivenOnce(t *testing.T) {
	t.Parallel()
	l := newDeafLoss(t)
	k := l.newKeeper(100 * time.Millisecond)
	l.start(k)
	l.awaitAcquainted()
	c := l.gateway("c", false) // one that leaves, as in any deployment
	l.a.charge(costing(1, 5)[0])
	l.b.charge(costing(1, 5)[0])
	servertest.Eventually(t, patience, "c", c.Whole)
	l.awaitRest()
	c.stop()
	l.loseWith(func() error { return l.settle("r", 1, -3) }, 1, 7, k)
	servertest.Eventually(t, patience, "the settlement", func() bool { return l.settle("r", 1, -3) == nil })
	l.equal("12 were admitted and 3 given back:", map[int]int64{1: 9})
}

// A lost refund is found and taken out; Redis is lost again before anybody has
// heard of that; then the refund is sent once more.
func TestASecondLossRemembersWhatWasTakenOut(t *testing.T) {
	t.Parallel()
	l := newDeafLoss(t)
	k := l.newKeeper(100 * time.Millisecond)
	l.start(k)
	l.awaitAcquainted()
	l.a.charge(costing(1, 5)[0])
	l.b.charge(costing(1, 5)[0])
	l.awaitRest()
	l.loseWith(func() error { return l.settle("r", 1, -3) }, 1, 7, k)
	l.equal("after the restore", map[int]int64{1: 12})
	servertest.Eventually(t, patience, "the gateways", func() bool { return l.a.Whole() && l.b.Whole() })
	before := testutil.ToFloat64(k.metrics.restores)
	l.flush()
	l.awaitRestore(before, k)
	servertest.Eventually(t, patience, "the settlement", func() bool { return l.settle("r", 1, -3) == nil })
	l.equal("12 were admitted and 3 given back:", map[int]int64{1: 9})
}
