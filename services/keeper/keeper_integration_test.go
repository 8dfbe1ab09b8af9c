//go:build integration

package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// shuffled are charges 1 to n of each counter in any order, some of them twice.
func shuffled(counters, n int) (all []usage.Event) {
	for c := range counters {
		for i := 1; i <= n; i++ {
			all = append(all, charge(c, i))
			if i%7 == 0 {
				all = append(all, charge(c, i))
			}
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (b *bench) expect(want map[string]row) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.rows()); diff != "" {
		b.t.Fatalf("checkpoints (-want +got):\n%s", diff)
	}
}

func TestCheckpointsAreTheMaximaWhateverTheOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.produce(shuffled(20, 40)...)
	b.start(b.newKeeper(50 * time.Millisecond))
	b.start(b.newKeeper(70 * time.Millisecond)) // shares partitions, and thereby rows
	b.waitCommitted()
	b.expect(want(20, 40))
	b.produce(charge(3, 7), charge(4, 1)) // late and known
	b.waitCommitted()
	b.expect(want(20, 40))
}

// An event's twin is counted once, whether it comes in one batch with it, in
// another, or thirty days and a keeper later, when its month has ended; two
// tenants' events with one id are two events.
func TestATwinIsCountedOnceWheneverItComes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := uses(0, 120)
	other := charge(1, 7)
	other.ID = first.ID
	b.produce(first, first, other)
	stop := b.start(b.newKeeper(50 * time.Millisecond))
	b.waitCommitted()
	b.produce(first, other)
	b.waitCommitted()
	stop()
	whole, told := b.rows(), b.announcements()
	if len(whole) != 2 || whole[counterOf(0)].Consumed != 120 || whole[counterOf(1)].Consumed != 7 || !maps.Equal(told, map[string]int{counterOf(0): 2}) {
		t.Fatalf("checkpoints %+v, announced %v", whole, told)
	}
	later := b.newKeeper(50 * time.Millisecond)
	later.deps.Now = func() time.Time { return noon.AddDate(0, 0, 30) }
	b.start(later)
	next := charge(1, 1)
	next.TS, next.Charges[0].Counter = noon.AddDate(0, 0, 30), strings.Replace(counterOf(1), "202607", "202608", 1)
	b.produce(first, next, other, first)
	b.waitCommitted()
	rows := b.rows()
	if rows[next.Charges[0].Counter].Consumed != 1 || len(rows) != 3 {
		t.Errorf("the next month: %+v", rows)
	}
	delete(rows, next.Charges[0].Counter)
	if diff := cmp.Diff(whole, rows); diff != "" {
		t.Errorf("thirty days later (-before +after):\n%s", diff)
	}
	if got := b.announcements(); !maps.Equal(got, told) {
		t.Errorf("announced %v", got)
	}
}

func TestPostgresAwayHoldsOffsetsBackAndLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.newKeeper(50 * time.Millisecond)
	b.start(s)
	b.produce(shuffled(5, 10)...)
	b.waitCommitted()
	b.proxy.Stop()
	b.produce(shuffled(5, 20)...)
	servertest.Eventually(t, patience, "checkpoints to fail", func() bool {
		return testutil.ToFloat64(s.metrics.failures) >= 2 && s.fold.size() == 5
	})
	if s.Ready() == nil {
		t.Fatal("ready with Postgres away")
	}
	if b.uncommitted() == 0 {
		t.Fatal("offsets were committed while Postgres was away")
	}
	b.produce(shuffled(5, 30)...) // folding goes on
	if err := b.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	b.waitCommitted()
	b.expect(want(5, 30))
	servertest.Eventually(t, patience, "the keeper to be ready again", func() bool { return s.Ready() == nil })
}

func TestStoppingWritesALastCheckpointAndCommits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.newKeeper(time.Hour)
	stop := b.start(s)
	all := shuffled(5, 10)
	b.produce(all...)
	servertest.Eventually(t, patience, "everything to be folded", func() bool { return testutil.ToFloat64(s.metrics.events) == float64(len(all)) })
	if len(b.rows()) != 0 || b.uncommitted() != int64(len(all)) {
		t.Fatalf("%d rows and %d uncommitted before the first checkpoint", len(b.rows()), b.uncommitted())
	}
	stop()
	b.expect(want(5, 10))
	if n := b.uncommitted(); n != 0 {
		t.Fatalf("%d records uncommitted after a clean stop", n)
	}
}

// A keeper that dies between checkpoint and commit leaves rows, and offsets
// from before: the next one reads the same records again.
func TestAKillBetweenCheckpointAndCommitChangesNoNumber(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	all := shuffled(5, 10)
	b.produce(all...)
	dead := b.newKeeper(time.Hour)
	if err := dead.handle(t.Context(), b.read(len(all))); err != nil {
		t.Fatal(err)
	}
	if err := dead.checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.expect(want(5, 10))
	if n := b.uncommitted(); n != int64(len(all)) {
		t.Fatalf("%d records uncommitted", n)
	}
	b.start(b.newKeeper(50 * time.Millisecond))
	b.waitCommitted()
	b.expect(want(5, 10))
}

// read takes n records from the topic without a group.
func (b *bench) read(n int) (batch []stream.Record) {
	b.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cfg.Brokers...), kgo.ConsumeTopics(b.cfg.Topic(usage.Topic)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	for len(batch) < n {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			batch = append(batch, stream.Record{Value: r.Value, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp})
		})
		if ctx.Err() != nil {
			b.t.Fatalf("read %d of %d records", len(batch), n)
		}
	}
	return batch
}

func TestBadRecordsDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	nul := charge(1, 1)
	nul.Charges[0].Counter += "\x00"
	b.produce(nul, charge(0, 3))
	r := &kgo.Record{Topic: b.cfg.Topic(usage.Topic), Value: []byte("{no json")}
	if err := b.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	s := b.newKeeper(50 * time.Millisecond)
	b.start(s)
	b.waitCommitted()
	b.expect(want(1, 3))
	if n := testutil.ToFloat64(s.metrics.bad); n != 2 {
		t.Fatalf("bad events count %v", n)
	}
}

func TestKeepersThatWriteTheSameRowsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const counters, rounds = 1200, 4
	var wg sync.WaitGroup
	for range 3 {
		s := b.newKeeper(time.Hour)
		wg.Go(func() {
			for round := 1; round <= rounds; round++ {
				if err := writeCheckpoint(t.Context(), b.pool, manyTotals(counters, round), noon, s.metrics.rows); err != nil {
					t.Errorf("write: %v", err)
				}
			}
		})
	}
	wg.Wait()
	rows := b.rows()
	for counter, r := range rows {
		if r.Consumed != rounds {
			t.Fatalf("%s has %d", counter, r.Consumed)
		}
	}
	if len(rows) != counters {
		t.Fatalf("%d rows", len(rows))
	}
}

func manyTotals(counters, consumed int) map[string]totals {
	all := map[string]totals{}
	for c := range counters {
		all[fmt.Sprintf("{t:%05d}:t::m:quota:month:202607", c)] = totals{metric: "m", consumed: int64(consumed), chargedAt: noon.Add(time.Duration(consumed) * time.Second)}
	}
	return all
}

func TestReadingPausesAtTheBoundOfMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.newKeeper(time.Hour)
	s.cfg.MaxCounters = 2
	record := func(e usage.Event) []stream.Record {
		value, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return []stream.Record{{Value: value, Timestamp: noon}}
	}
	for c := range 2 {
		if err := s.handle(t.Context(), record(charge(c, 1))); err != nil {
			t.Fatal(err)
		}
	}
	if s.handle(t.Context(), record(charge(3, 1))) == nil {
		t.Fatal("a full fold took more")
	}
	if err := s.checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.handle(t.Context(), record(charge(3, 1))); err != nil {
		t.Fatalf("after a checkpoint: %v", err)
	}
}
