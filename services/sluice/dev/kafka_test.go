package dev

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func openTestKafka(t *testing.T, dir string) (*kafka, *strings.Builder) {
	t.Helper()
	var logged strings.Builder
	k, err := startKafka(dir, 0, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return k, &logged
}

func kafkaClient(t *testing.T, k *kafka) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.addr), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// produce makes topic t with one record in it.
func produce(t *testing.T, k *kafka) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client := kafkaClient(t, k)
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(ctx, kgo.StringRecord("v")).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// records is the end offset of topic t, -1 if there is none.
func records(t *testing.T, k *kafka) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client := kafkaClient(t, k)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	end, ok := ends.Lookup("t", 0)
	if !ok || end.Err != nil {
		return -1
	}
	return end.Offset
}

func TestKafkaKeepsItsLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kafka")
	k, _ := openTestKafka(t, dir)
	produce(t, k)
	k.stop()
	k, logged := openTestKafka(t, dir)
	defer k.stop()
	if got := records(t, k); got != 1 {
		t.Errorf("%d records after a restart, want 1", got)
	}
	if logged.Len() != 0 {
		t.Errorf("logged %s", logged)
	}
}

func TestABrokenKafkaLogIsMovedAside(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kafka")
	k, _ := openTestKafka(t, dir)
	produce(t, k)
	k.stop()
	if err := os.WriteFile(filepath.Join(dir, "topics.json"), []byte(`{"version":1,"topics":[{"na`), 0o600); err != nil {
		t.Fatal(err)
	}
	k, logged := openTestKafka(t, dir)
	defer k.stop()
	if got := records(t, k); got != -1 {
		t.Errorf("topic of the broken log has %d records", got)
	}
	aside, err := filepath.Glob(dir + ".broken-*/topics.json")
	if err != nil || len(aside) != 1 {
		t.Errorf("moved aside: %v, %v", aside, err)
	}
	if !strings.Contains(logged.String(), "level=WARN") || !strings.Contains(logged.String(), ".broken-") {
		t.Errorf("logged %s", logged)
	}
}

// A kill -9 leaves a record half written at the end of a segment.
func TestATornKafkaSegmentIsCutAtItsEnd(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kafka")
	k, _ := openTestKafka(t, dir)
	produce(t, k)
	k.stop()
	var segments []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".dat" {
			segments = append(segments, path)
		}
		return err
	})
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	f, err := os.OpenFile(segments[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	k, logged := openTestKafka(t, dir)
	defer k.stop()
	if got := records(t, k); got != 1 {
		t.Errorf("%d records, want 1; logged %s", got, logged)
	}
}

// A log that is there already is compacted at the start, and again and again.
func TestKafkaIsCompacted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kafka")
	k, _ := openTestKafka(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client := kafkaClient(t, k)
	policy := "compact"
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, map[string]*string{"cleanup.policy": &policy}, "t"); err != nil {
		t.Fatal(err)
	}
	write := func(client *kgo.Client, n int) {
		t.Helper()
		for range n {
			if err := client.ProduceSync(ctx, kgo.KeySliceRecord([]byte("k"), []byte("v"))).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	start := func(client *kgo.Client) int64 {
		t.Helper()
		starts, err := kadm.NewClient(client).ListStartOffsets(ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		first, _ := starts.Lookup("t", 0)
		return first.Offset
	}
	write(client, 5)
	client.Close()
	k.stop()

	k, _ = openTestKafka(t, dir)
	defer k.stop()
	client = kafkaClient(t, k)
	defer client.Close()
	if got := start(client); got != 3 { // the broker leaves the last record alone
		t.Errorf("the log begins at %d after a restart, want 3", got)
	}
	k.ended.Go(func() { k.clean(10 * time.Millisecond) })
	write(client, 5)
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for start(client) != 8 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("the log begins at %d, want 8", start(client))
		}
	}
}
