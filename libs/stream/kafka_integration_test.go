//go:build integration

package stream

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events"
)

func TestGroupOnRealKafka(t *testing.T) {
	t.Parallel()
	t.Run("continues", func(t *testing.T) {
		t.Parallel()
		brokers, prefix := servertest.Kafka(t)
		groupContinues(t, newFlow(t, brokers, prefix))
	})
	t.Run("awaits its topic", func(t *testing.T) {
		t.Parallel()
		brokers, prefix := servertest.Kafka(t)
		groupAwaitsTopic(t, newFlow(t, brokers, prefix))
	})
	t.Run("reads anew", func(t *testing.T) {
		t.Parallel()
		brokers, prefix := servertest.Kafka(t)
		groupReadsAnew(t, newFlow(t, brokers, prefix))
	})
	t.Run("shares", func(t *testing.T) {
		t.Parallel()
		brokers, prefix := servertest.Kafka(t)
		groupShares(t, newFlow(t, brokers, prefix))
	})
}

func newRealBench(t *testing.T) *bench {
	t.Helper()
	brokers, prefix := servertest.Kafka(t)
	b := &bench{t: t, cfg: Config{Brokers: brokers, TopicPrefix: prefix}}
	client, err := kgo.NewClient(b.cfg.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	b.admin = kadm.NewClient(client)
	b.createTopic()
	return b
}

func TestTopicsAreCreatedAsDeclaredAndOthersRefused(t *testing.T) {
	t.Parallel()
	b := newRealBench(t)
	configs, err := b.admin.DescribeTopicConfigs(t.Context(), b.cfg.Topic(testTopic))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range configs[0].Configs {
		got[c.Key] = c.MaybeValue()
	}
	want := map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.ms": "3600000", "delete.retention.ms": "86400000", "max.message.bytes": "1048588"}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s = %q, want %q", key, got[key], value)
		}
	}
	b.createTopic() // again: nothing to do
	more := []events.Topic{{Name: testTopic, Partitions: 2, Retention: time.Hour}}
	err = EnsureTopics(t.Context(), b.cfg, more, testLog(t))
	if err == nil || !strings.Contains(err.Error(), "has 1 partitions where 2 are needed") {
		t.Fatalf("another number of partitions: %v", err)
	}
}

func TestTableOnRealKafkaFollowsATopicMadeAgain(t *testing.T) {
	t.Parallel()
	b := newRealBench(t)
	b.put("a", 1, 1, "1")
	b.put("gone", 1, 2, "2")
	b.mirror()
	sink := &memory{}
	table := b.newTable(sink)
	eventually(t, "readiness", func() bool { return table.Ready() == nil })
	if _, err := b.admin.DeleteTopics(t.Context(), b.cfg.Topic(testTopic)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the topic to be made again", func() bool {
		_, err := b.admin.CreateTopic(t.Context(), 1, 1, nil, b.cfg.Topic(testTopic))
		return err == nil
	})
	b.ledger = Ledger{}
	b.put("a", 1, 3, "3")
	b.mirror()
	eventually(t, "the new copy", func() bool {
		v, _ := sink.get("a")
		_, still := sink.get("gone")
		return v == 3 && !still
	})
}

func TestTableOnRealKafkaReadsOnPastDeletedRecords(t *testing.T) {
	t.Parallel()
	b := newRealBench(t)
	b.put("a", 1, 1, "1")
	b.mirror()
	table := b.newTable(nil)
	eventually(t, "readiness", func() bool { return table.Ready() == nil })
	b.empty()
	late := b.newTable(nil)
	b.put("b", 1, 2, "2")
	eventually(t, "the change", func() bool { _, ok := table.Get("b"); return ok })
	if err := late.Ready(); err == nil {
		t.Fatal("a table is ready without a mirror record")
	}
	// The relay writes everything again.
	b.put("a", 1, 1, "1")
	b.mirror()
	eventually(t, "the late table", func() bool { return late.Ready() == nil && late.Len() == 2 })
	if err := table.Ready(); errors.Is(err, ErrLost) || err != nil {
		t.Fatal(err)
	}
}
