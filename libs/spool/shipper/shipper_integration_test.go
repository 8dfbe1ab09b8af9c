//go:build integration

package shipper

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/spool"
	"github.com/sluice-platform/sluice/libs/stream"
)

const topic = "usage.v1"

const patience = 30 * time.Second

func openSpool(t *testing.T, dir string) *spool.Spool {
	t.Helper()
	s, err := spool.Open(spool.Options{Dir: dir, SizeBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newShipper(t *testing.T, s *spool.Spool, cfg stream.Config) *Shipper {
	t.Helper()
	ship, err := New(Options{Spool: s, Stream: cfg, Topic: topic, DrainTimeout: 2 * time.Second,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return ship
}

// start runs a shipper; the returned function stops it and waits.
func start(t *testing.T, s *Shipper) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("shipper: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func createTopic(t *testing.T, cfg stream.Config) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 6, 1, nil, cfg.Topic(topic)); err != nil {
		t.Fatal(err)
	}
}

// readAll reads until want records were seen, and returns values by key.
func readAll(t *testing.T, cfg stream.Config, want int) map[string]string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.ConsumeTopics(cfg.Topic(topic)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := map[string]string{}
	for len(seen) < want {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("read %d of %d records", len(seen), want)
		}
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)] = string(r.Key) })
	}
	return seen
}

func appendEvents(s *spool.Spool, from, to int) {
	for n := from; n < to; n++ {
		s.AppendKeyed(fmt.Sprintf("tenant-%d", n%7), []byte(fmt.Sprintf("event-%05d", n)))
	}
}

func waitEmpty(t *testing.T, s *spool.Spool) {
	t.Helper()
	servertest.Eventually(t, patience, "the spool to be empty", func() bool { return s.Stats().Pending == 0 })
}

func TestRecordsArriveUnderTheirKeysOnceTheTopicIsThere(t *testing.T) {
	t.Parallel()
	brokers, prefix := servertest.Kafka(t)
	cfg := stream.Config{Brokers: brokers, TopicPrefix: prefix}
	s := openSpool(t, t.TempDir())
	appendEvents(s, 0, 1000)
	ship := newShipper(t, s, cfg)
	start(t, ship)
	appendEvents(s, 1000, 3000)
	if st := s.Stats(); st.Pending != 3000 {
		t.Fatalf("%d records pending without a topic", st.Pending)
	}
	createTopic(t, cfg)
	waitEmpty(t, s)
	seen := readAll(t, cfg, 3000)
	for value, key := range seen {
		var n int
		if _, err := fmt.Sscanf(value, "event-%d", &n); err != nil || key != fmt.Sprintf("tenant-%d", n%7) {
			t.Fatalf("record %q has key %q", value, key)
		}
	}
	if n := testutil.ToFloat64(ship.metrics.shipped); n != 3000 {
		t.Fatalf("shipped counts %v", n)
	}
}

func TestARecordKafkaRefusesIsSkippedAndCounted(t *testing.T) {
	t.Parallel()
	brokers, prefix := servertest.Kafka(t)
	cfg := stream.Config{Brokers: brokers, TopicPrefix: prefix}
	createTopic(t, cfg)
	s := openSpool(t, t.TempDir())
	appendEvents(s, 0, 50)
	s.AppendKeyed("tenant", bytes.Repeat([]byte("x"), 1_500_000))
	appendEvents(s, 50, 100)
	ship := newShipper(t, s, cfg)
	start(t, ship)
	waitEmpty(t, s)
	if seen := readAll(t, cfg, 100); len(seen) != 100 {
		t.Fatalf("%d records arrived", len(seen))
	}
	if n := testutil.ToFloat64(ship.metrics.refused); n != 1 {
		t.Fatalf("refused counts %v", n)
	}
}

func TestKafkaAwayFillsTheSpoolAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kafka := servertest.StartKafkaWith(t, devserver.KafkaOptions{Dir: dir})
	cfg := stream.Config{Brokers: kafka.Brokers()}
	createTopic(t, cfg)
	spoolDir := t.TempDir()
	s := openSpool(t, spoolDir)
	stop := start(t, newShipper(t, s, cfg))
	appendEvents(s, 0, 500)
	waitEmpty(t, s)

	kafka.Kill()
	appendEvents(s, 500, 2000)
	began := time.Now()
	stop() // gives up draining after its DrainTimeout, with records in flight
	if took := time.Since(began); took > 15*time.Second {
		t.Fatalf("stopping without Kafka took %v", took)
	}
	if st := s.Stats(); st.Pending != 1500 || st.Dropped != 0 {
		t.Fatalf("without Kafka: %+v", st)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openSpool(t, spoolDir)
	start(t, newShipper(t, s, cfg))
	appendEvents(s, 2000, 2500)
	servertest.StartKafkaWith(t, devserver.KafkaOptions{Dir: dir, Port: kafka.Port()})
	waitEmpty(t, s)
	if seen := readAll(t, cfg, 2500); len(seen) != 2500 {
		t.Fatalf("%d of 2500 records arrived", len(seen))
	}
}
