//go:build integration

package relay

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// While a large view is compared again and again, writes go on: nothing is
// mistaken for a difference, and nothing waits for the comparison.
func TestReconciliationAmongWrites(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.exec(`INSERT INTO thing SELECT 'bulk' || g, nextval('sluice_version'), '{}' FROM generate_series(1, 5000) g`)
	relay := b.relayWith(func(c *Config, _ *Deps) { c.ReconcileEvery = 30 * time.Millisecond })
	b.streaming(relay)
	table := b.table()
	b.equal("the bulk", table)
	found := testutil.ToFloat64(relay.metrics.differences.WithLabelValues(things))
	if found != 5000 {
		t.Fatalf("%v differences at first, want the 5000 rows", found)
	}
	for n := range 300 {
		key := fmt.Sprintf("k%d", n%7)
		b.put(key, n)
		if n%5 == 0 {
			b.remove(key)
		}
		b.put(fmt.Sprintf("bulk%d", n+1), n)
	}
	b.equal("after the writes", table)
	b.eventually("the outbox to be emptied", func() bool { return b.outboxLen() == 0 })
	// A row may be seen by the snapshot before the WAL brings it: such a key is
	// published by either, once.
	published := testutil.ToFloat64(relay.metrics.published.WithLabelValues(things))
	skipped := testutil.ToFloat64(relay.metrics.skipped.WithLabelValues(things))
	more := testutil.ToFloat64(relay.metrics.differences.WithLabelValues(things)) - found
	if rows := 300.0 + 60 + 300; published-5000-more+skipped != rows {
		t.Errorf("%v rows written; %v published beside %v differences, %v skipped", rows, published-5000-more, more, skipped)
	}
	if got := table.State().Generation; got != 1 {
		t.Fatalf("generation %d: the topic was thought to be ahead", got)
	}
	if got := testutil.ToFloat64(relay.metrics.surprises.WithLabelValues(things)); got != 0 {
		t.Fatalf("%v surprises though nobody else writes", got)
	}
}
