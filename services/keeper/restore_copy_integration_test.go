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
	// used waits for it: until a keeper has looked, Redis is charged as it came back.
	used := func(fresh string, wantOne, wantTwo int64) {
		t.Helper()
		g := l.gateway(fresh, true)
		consumed := func(tenant int) int64 {
			c := monthly(tenant, 1000)
			c.Cost = 0
			_, st := g.charge(c)
			return st.Consumed
		}
		var one, two int64
		defer func() { t.Logf("%d and %d consumed, want %d and %d", one, two, wantOne, wantTwo) }()
		servertest.Eventually(t, patience, "what was charged to be back", func() bool {
			one, two = consumed(1), consumed(2)
			return one == wantOne && two == wantTwo
		})
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
	used("fresh-1", 41, 7)
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
	used("fresh-2", 42, 8)
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
