//go:build integration

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// office is a house with a relay, and a keeper that dies.
type office struct {
	*stack
	reaper *reaper
	config map[string]any
	kafka  *kgo.Client
	keeper *process
	starts int
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{stack: sharedStack(t), reaper: &reaper{t: t}}
	o.process("rest", "controlplane,relay", nil).start().awaitReady()
	o.config = o.through(o.reaper)
	delete(o.config, "redis") // what it asks there all the time is no step of this
	var err error
	if o.kafka, err = kgo.NewClient(kgo.SeedBrokers(o.brokers...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.kafka.Close)
	o.hire()
	servertest.Eventually(t, 30*time.Second, "the quotas to be whole, so that nothing is to be restored below", func() bool {
		return o.keeper.metric("sluice_keeper_restores_total") > 0
	})
	return o
}

func (o *office) group() string { return fmt.Sprintf("%skeeper-%d", o.topicPrefix, o.starts) }

// hire starts a keeper. Kafka takes 45 s to notice that a member was killed, so
// each start is a group of its own, which begins where the one before had
// committed.
func (o *office) hire() {
	o.t.Helper()
	var committed kadm.OffsetResponses
	servertest.Eventually(o.t, 30*time.Second, "Kafka to know what the keeper before has committed", func() bool {
		var err error
		committed, err = kadm.NewClient(o.kafka).FetchOffsets(o.t.Context(), o.group())
		return err == nil
	})
	o.starts++
	if len(committed) > 0 {
		if err := kadm.NewClient(o.kafka).CommitAllOffsets(o.t.Context(), o.group(), committed.Offsets()); err != nil {
			o.t.Fatal(err)
		}
	}
	config := maps.Clone(o.config)
	config["keeper"] = map[string]any{"group": fmt.Sprint("keeper-", o.starts), "checkpointEvery": "100ms"}
	o.keeper = o.process("keeper", "keeper", config).start().awaitReady()
}

// spends is what a gateway tells of a tenant: of 100 calls it uses 85, then 120.
func (o *office) spends(tenant string) {
	o.t.Helper()
	var records []*kgo.Record
	limit, now := int64(100), time.Now().UTC()
	for _, consumed := range []int64{85, 120} {
		value, err := json.Marshal(usage.Event{
			ID: fmt.Sprint(tenant, consumed), TS: now, TenantID: tenant,
			Charges: []usage.Charge{{Counter: callsOf(tenant), Metric: "calls", Amount: 35, Consumed: consumed, Limit: &limit}},
		})
		if err != nil {
			o.t.Fatal(err)
		}
		records = append(records, &kgo.Record{Topic: o.topicPrefix + usage.Topic, Key: []byte(tenant), Value: value})
	}
	if err := o.kafka.ProduceSync(o.t.Context(), records...).FirstErr(); err != nil {
		o.t.Fatal(err)
	}
}

func callsOf(tenant string) string { return "{t:" + tenant + "}:t::calls:quota:month:202607" }

// done reports whether all that follows is in Postgres, and the offsets are committed.
func (o *office) done(tenant string) bool {
	o.t.Helper()
	return o.figure(`SELECT (SELECT count(*) FROM thresholds WHERE counter = $1 AND reached) + (SELECT count(*) FROM checkpoints WHERE counter = $1)`, callsOf(tenant)) == 2+1 &&
		servertest.Uncommitted(o.t, o.kafka, o.topicPrefix+usage.Topic, o.group()) == 0
}

// holds holds a tenant's numbers, and that nothing is there twice.
func (o *office) holds(tenant string) {
	o.t.Helper()
	for sql, want := range map[string]int64{
		`SELECT sum(consumed - refunded)::bigint FROM checkpoints WHERE counter = $1`: 120,
		`SELECT count(*) FROM thresholds WHERE counter = $1`:                          2,
	} {
		if got := o.figure(sql, callsOf(tenant)); got != want {
			o.t.Errorf("%s of %s is %d, want %d", sql, tenant, got, want)
		}
	}
}

// announced reads quota-events.v1: of each tenant the thresholds, in order.
func (o *office) announced(n int) map[string][]int64 {
	o.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(o.brokers...), kgo.ConsumeTopics(o.topicPrefix+quotaevents.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		o.t.Fatal(err)
	}
	defer client.Close()
	servertest.Eventually(o.t, 20*time.Second, "the outbox to be carried", func() bool {
		return o.figure(`SELECT count(*) FROM outbox WHERE topic = $1`, quotaevents.Topic) == 0
	})
	ctx, cancel := context.WithTimeout(o.t.Context(), 2*time.Minute)
	defer cancel()
	all, ends := map[string][]int64{}, 0
	for read := 0; read < n; {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			var e quotaevents.Reached
			if err := json.Unmarshal(r.Value, &e); err != nil {
				o.t.Errorf("%s: %v", r.Value, err)
				return
			}
			all[string(r.Key)] = append(all[string(r.Key)], e.Threshold.Percent)
			read++
		})
		if ctx.Err() != nil {
			o.t.Fatalf("%d of %d quota events came", read, n)
		}
	}
	listed, err := kadm.NewClient(o.kafka).ListEndOffsets(o.t.Context(), o.topicPrefix+quotaevents.Topic)
	if err != nil {
		o.t.Fatal(err)
	}
	listed.Each(func(l kadm.ListedOffset) { ends += int(l.Offset) })
	if ends != n {
		o.t.Errorf("quota-events.v1 holds %d records, want %d", ends, n)
	}
	return all
}

// A keeper is killed at every step of what follows from a tenant's use: two
// thresholds and a checkpoint. Its next start does what is missing, and each is
// there once, in quota-events.v1 too.
func TestCheckpointsAndThresholdsOutliveTheirKeeper(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	steps := 1
	for ; ; steps++ {
		tenant := fmt.Sprintf("t%03d", steps)
		o.reaper.arm(o.keeper, steps)
		o.spends(tenant)
		servertest.Eventually(t, 30*time.Second, "the keeper to end one way or the other", func() bool { return o.reaper.struck() || o.done(tenant) })
		lived := o.reaper.disarm()
		if !lived {
			o.hire()
			servertest.Eventually(t, 30*time.Second, "the next keeper to do what is missing", func() bool { return o.done(tenant) })
		}
		if o.holds(tenant); t.Failed() {
			t.Fatalf("killed at step %d", steps)
		}
		if lived {
			break
		}
	}
	all := o.announced(2 * steps)
	for n := range steps {
		tenant := fmt.Sprintf("t%03d", n+1)
		if o.holds(tenant); !slices.Equal(all[tenant], []int64{80, 100}) {
			t.Errorf("%s was announced %v", tenant, all[tenant])
		}
	}
	t.Logf("%d steps", steps-1)
	if steps < 9 {
		t.Errorf("%d steps are not what this test means", steps-1)
	}
}
