package stream

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/schemas/events"
)

const testTopic = "things.v1"

var testTopics = []events.Topic{{Name: testTopic, Partitions: 1, Compacted: true, View: "things_v1"}}

// bench is a broker in this process with one compacted topic, and a hand that
// writes to it as the relay would.
type bench struct {
	t      testing.TB
	broker *kfake.Cluster
	cfg    Config
	admin  *kadm.Client
	ledger Ledger // what a faithful copy holds
}

func newBench(t testing.TB) *bench {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	b := &bench{t: t, broker: broker, cfg: Config{Brokers: broker.ListenAddrs(), TopicPrefix: "p."}}
	client, err := kgo.NewClient(b.cfg.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	b.admin = kadm.NewClient(client)
	b.createTopic()
	return b
}

func (b *bench) createTopic() {
	b.t.Helper()
	if err := EnsureTopics(b.t.Context(), b.cfg, testTopics, testLog(b.t)); err != nil {
		b.t.Fatal(err)
	}
}

// produce writes with a client of its own: the topic may have been made anew.
func (b *bench) produce(records ...*kgo.Record) {
	b.t.Helper()
	client, err := kgo.NewClient(append(b.cfg.ClientOptions(), kgo.ProducerLinger(0))...)
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	for _, r := range records {
		r.Topic = b.cfg.Topic(testTopic)
	}
	if err := client.ProduceSync(b.t.Context(), records...).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) put(key string, generation, version int64, value string) {
	b.t.Helper()
	b.ledger.Apply(key, generation, version, []byte(value))
	b.produce(record(key, generation, version, []byte(value)))
}

func (b *bench) remove(key string, generation, version int64) {
	b.t.Helper()
	b.ledger.Apply(key, generation, version, nil)
	b.produce(record(key, generation, version, nil))
}

func (b *bench) mirror() {
	b.t.Helper()
	b.produce(mirrorOf(&b.ledger))
}

// empty deletes all records, as an operator would: Kafka refuses that for a
// topic that is only compacted.
func (b *bench) empty() {
	b.t.Helper()
	name := b.cfg.Topic(testTopic)
	policy := func(value string) {
		b.t.Helper()
		answers, err := b.admin.AlterTopicConfigs(b.t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &value}}, name)
		if err == nil {
			_, err = answers.On(name, func(r *kadm.AlterConfigsResponse) error { return r.Err })
		}
		if err != nil {
			b.t.Fatalf("set cleanup.policy: %v", err)
		}
	}
	policy("delete")
	ends, err := b.admin.ListEndOffsets(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	eventually(b.t, "the records to be deleted", func() bool {
		answers, err := b.admin.DeleteRecords(b.t.Context(), ends.Offsets())
		return err == nil && answers.Error() == nil
	})
	policy("compact")
}

func record(key string, generation, version int64, value []byte) *kgo.Record {
	stamp := Stamp{Generation: generation, Version: version, CommittedAt: time.Now(), RelayedAt: time.Now()}
	return &kgo.Record{Key: []byte(key), Value: value, Headers: stamp.Headers()}
}

func mirrorOf(l *Ledger) *kgo.Record {
	value, _ := json.Marshal(events.Mirror{ // plain fields: cannot fail
		Generation: l.Generation(), Count: l.Count(), Digest: FormatDigest(l.Sum()), At: time.Now().UnixMicro(),
	})
	return &kgo.Record{Key: []byte(events.MirrorKey), Value: value}
}

// memory is a sink that remembers.
type memory struct {
	mu       sync.Mutex
	entries  map[string]int
	replaced int
	applied  []string
}

func (m *memory) Replace(entries map[string]Entry[int]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = map[string]int{}
	for key, e := range entries {
		m.entries[key] = e.Value
	}
	m.replaced++
}

func (m *memory) Apply(ch Change[int]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.applied = append(m.applied, ch.Key); ch.Deleted {
		delete(m.entries, ch.Key)
		return
	}
	m.entries[ch.Key] = ch.Entry.Value
}

func (m *memory) get(key string) (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.entries[key]
	return v, ok
}

// newTable runs a table of numbers over the bench until the test ends.
func (b *bench) newTable(sink Sink[int]) *Table[int] {
	b.t.Helper()
	table, err := NewTable(b.cfg, TableOptions[int]{
		Topic: testTopic, Sink: sink, Log: testLog(b.t),
		Decode: func(_ string, value []byte) (int, error) { return strconv.Atoi(string(value)) },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	runUntilEnd(b.t, table.Run)
	return table
}

// salvagingTable stands in for bad records that say with what number.
func (b *bench) salvagingTable(sink Sink[int]) *Table[int] {
	b.t.Helper()
	table, err := NewTable(b.cfg, TableOptions[int]{
		Topic: testTopic, Sink: sink, Log: testLog(b.t),
		Decode: func(_ string, value []byte) (int, error) { return strconv.Atoi(string(value)) },
		Salvage: func(_ string, value []byte, _ error) (int, bool) {
			text, ok := strings.CutPrefix(string(value), "bad ")
			n, err := strconv.Atoi(text)
			return n, ok && err == nil
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	runUntilEnd(b.t, table.Run)
	return table
}

func runUntilEnd(t testing.TB, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}
