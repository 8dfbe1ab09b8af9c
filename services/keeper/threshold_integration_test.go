//go:build integration

package keeper

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// uses is a charge of a counter with a limit of 100, which it then has used so far.
func uses(counter int, consumed int64) usage.Event {
	e := charge(counter, int(consumed))
	e.Charges[0].Refunded, e.Charges[0].Limit = 0, new(int64(100))
	return e
}

// crossed are counters 0 to n-1 on their way over both thresholds.
func crossed(n int) (all []usage.Event) {
	for c := range n {
		for _, consumed := range []int64{79, 80, 99, 100, 150} {
			all = append(all, uses(c, consumed))
		}
	}
	return all
}

func (b *bench) announcements() map[string]int {
	b.t.Helper()
	rows, err := b.direct.Query(b.t.Context(), `SELECT payload::jsonb->>'counter', count(*) FROM outbox GROUP BY 1`)
	if err != nil {
		b.t.Fatal(err)
	}
	all := map[string]int{}
	var counter string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&counter, &n}, func() error { all[counter] = n; return nil }); err != nil {
		b.t.Fatal(err)
	}
	return all
}

func twice(n int) map[string]int {
	all := map[string]int{}
	for c := range n {
		all[counterOf(c)] = 2
	}
	return all
}

func TestCrossingsDoNotWaitForACheckpoint(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(b.newKeeper(time.Hour))
	b.produce(crossed(5)...)
	servertest.Eventually(t, patience, "crossings in the outbox", func() bool { return maps.Equal(b.announcements(), twice(5)) })
	if len(b.rows()) != 0 {
		t.Fatal("a checkpoint was written")
	}
	if b.uncommitted() == 0 {
		t.Fatal("offsets were committed without a checkpoint")
	}
}

// Partitions share counters here, and move between keepers that come and go.
func TestKeepersThatComeAndGoAnnounceOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const counters = 30
	all := crossed(counters)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	b.start(b.newKeeper(50 * time.Millisecond))
	for part := range slices.Chunk(all, 75) {
		b.produce(part...)
		stop := b.start(b.newKeeper(50 * time.Millisecond))
		b.produce(part[:5]...)
		b.waitCommitted()
		stop()
	}
	b.waitCommitted()
	if got := b.announcements(); !maps.Equal(got, twice(counters)) {
		t.Fatalf("announced %v", got)
	}
}

func TestOffsetsWaitForThresholds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.newKeeper(50 * time.Millisecond)
	if _, err := b.direct.Exec(t.Context(), `ALTER TABLE thresholds RENAME TO elsewhere`); err != nil {
		t.Fatal(err)
	}
	b.start(s)
	b.produce(crossed(3)...)
	servertest.Eventually(t, patience, "a checkpoint, and thresholds to wait", func() bool { return len(b.rows()) == 3 && s.Ready() != nil })
	if b.uncommitted() == 0 {
		t.Fatal("offsets were committed before thresholds were settled")
	}
	if _, err := b.direct.Exec(t.Context(), `ALTER TABLE elsewhere RENAME TO thresholds`); err != nil {
		t.Fatal(err)
	}
	b.waitCommitted()
	if got := b.announcements(); !maps.Equal(got, twice(3)) {
		t.Fatalf("announced %v", got)
	}
}
