//go:build integration

package keeper

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// Redis is made a replica and a master again, and lacks then what it was charged
// in between, though it has its run id and its marker: what events, checkpoints
// and gateways know of it is brought back, also where no keeper was there.
func TestUnitsSurviveADetourOfRedis(t *testing.T) {
	t.Parallel()
	l := newLoss(t)
	one, other := l.newKeeper(100*time.Millisecond), l.newKeeper(100*time.Millisecond)
	stops := []func(){l.start(one), l.start(other)}
	restores := func() float64 {
		return l.restores(one) + l.restores(other)
	}
	ships, offline := l.gateway("ships", true), l.gateway("offline", false)
	used := func(name string, tenant int) int64 {
		t.Helper()
		c := monthly(tenant, 1000)
		c.Cost = 0
		_, st := l.gateway(name, true).charge(c)
		return st.Consumed
	}
	ships.charge(monthly(1, 1000))
	restored := restores()
	servertest.Detour(t, l.server, func() {
		for range 20 {
			ships.charge(monthly(1, 1000))
			offline.charge(monthly(1, 1000))
		}
		l.told(2, 7)
	})
	servertest.Eventually(t, patience, "the restore", func() bool { return restores() > restored })
	if one, two := used("fresh-1", 1), used("fresh-2", 2); one != 41 || two != 7 {
		t.Fatalf("%d and %d consumed, want 41 and 7", one, two)
	}
	for _, stop := range stops {
		stop()
	}
	servertest.Detour(t, l.server, func() {
		ships.charge(monthly(1, 1000))
		l.told(2, 8)
	})
	later := l.newKeeper(100 * time.Millisecond)
	l.start(later)
	servertest.Eventually(t, patience, "the restore", func() bool { return l.restores(later) > 0 })
	if one, two := used("fresh-3", 1), used("fresh-4", 2); one != 42 || two != 8 {
		t.Fatalf("%d and %d consumed, want 42 and 8", one, two)
	}
}

// told is the event of a charge by a gateway that nobody remembers.
func (l *loss) told(tenant int, consumed int64) {
	l.t.Helper()
	limited := int64(1000)
	l.produce(usage.Event{
		ID: fmt.Sprintf("told-%d-%d", tenant, consumed), TS: time.Now(),
		Charges: []usage.Charge{{Counter: counterNow(tenant), Metric: "reports", Amount: 1, Consumed: consumed, Limit: &limited}},
	})
}
