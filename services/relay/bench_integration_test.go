//go:build integration

package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events"
)

// A room as any other: a table with soft deletion, a view, a topic.
const room = `CREATE TABLE thing (id text PRIMARY KEY, version bigint NOT NULL, document jsonb NOT NULL, deleted boolean NOT NULL DEFAULT false);
CREATE VIEW things_v1 AS SELECT id AS key, version, CASE WHEN deleted THEN NULL ELSE document::text END AS payload FROM thing`

const (
	things = "things.v1"
	notes  = "notes.v1" // not compacted
)

var registry = []events.Topic{
	{Name: things, Partitions: 1, Compacted: true, View: "things_v1"},
	{Name: notes, Partitions: 2, Retention: time.Hour},
}

const patience = 30 * time.Second

// bench is a database with a room, a share of Kafka, and relays between them.
type bench struct {
	t      *testing.T
	dsn    string
	slot   string
	conn   *pgx.Conn
	stream stream.Config
	kafka  *kgo.Client
	admin  *kadm.Client
}

func newBench(t *testing.T) *bench {
	t.Helper()
	brokers, prefix := servertest.Kafka(t)
	return newBenchOn(t, servertest.Postgres(t), brokers, prefix)
}

// newBenchOn works on servers that the test may break.
func newBenchOn(t *testing.T, dsn string, brokers []string, prefix string) *bench {
	t.Helper()
	if err := migrate.Up(t.Context(), dsn, "outbox"); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dsn: dsn, stream: stream.Config{Brokers: brokers, TopicPrefix: prefix}, conn: connect(t, dsn)}
	b.slot = "relay_" + strings.TrimSuffix(prefix, ".")
	b.exec(room)
	client, err := kgo.NewClient(append(b.stream.ClientOptions(), kgo.ProducerLinger(0))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	b.kafka, b.admin = client, kadm.NewClient(client)
	return b
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.conn.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) inTx(do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(b.t.Context(), b.conn, do)
}

// write stores a thing as a room does: row and outbox row in one transaction.
func (b *bench) write(tx pgx.Tx, id, document string) error {
	var version int64
	var text string
	err := tx.QueryRow(b.t.Context(), `INSERT INTO thing (id, version, document) VALUES ($1, nextval('sluice_version'), $2::jsonb)
		ON CONFLICT (id) DO UPDATE SET version = excluded.version, document = excluded.document, deleted = false
		RETURNING version, document::text`, id, document).Scan(&version, &text)
	if err != nil {
		return err
	}
	return outbox.Append(b.t.Context(), tx, outbox.Message{Topic: things, Key: id, Version: version, Payload: []byte(text)})
}

func (b *bench) erase(tx pgx.Tx, id string) error {
	var version int64
	err := tx.QueryRow(b.t.Context(), `UPDATE thing SET version = nextval('sluice_version'), deleted = true WHERE id = $1 RETURNING version`, id).Scan(&version)
	if err != nil {
		return err
	}
	return outbox.Append(b.t.Context(), tx, outbox.Message{Topic: things, Key: id, Version: version})
}

func (b *bench) put(id string, n int) {
	b.t.Helper()
	if err := b.inTx(func(tx pgx.Tx) error { return b.write(tx, id, fmt.Sprintf(`{"n":%d}`, n)) }); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) remove(id string) {
	b.t.Helper()
	if err := b.inTx(func(tx pgx.Tx) error { return b.erase(tx, id) }); err != nil {
		b.t.Fatal(err)
	}
}

// relayRun is a relay that runs until stopped.
type relayRun struct {
	*Service
	reg  *prometheus.Registry
	stop func()
}

func (b *bench) relay() *relayRun { return b.relayWith(func(*Config, *Deps) {}) }

func (b *bench) relayWith(change func(*Config, *Deps)) *relayRun {
	b.t.Helper()
	cfg := DefaultConfig()
	cfg.Slot, cfg.MirrorEvery, cfg.StandbyEvery = b.slot, 200*time.Millisecond, 50*time.Millisecond
	reg := prometheus.NewRegistry()
	deps := Deps{DatabaseURL: service.Secret(b.dsn), Stream: b.stream, Topics: registry, Registerer: reg, Log: slog.New(slog.NewTextHandler(b.t.Output(), nil))}
	change(&cfg, &deps)
	s, err := New(cfg, deps)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("relay: %v", err)
		}
	})
	b.t.Cleanup(stop)
	return &relayRun{Service: s, reg: reg, stop: stop}
}

func (r *relayRun) active() bool { return testutil.ToFloat64(r.metrics.active) == 1 }

// settled waits until the relay streams.
func (b *bench) streaming(r *relayRun) {
	b.t.Helper()
	b.eventually("the relay to stream", func() bool { return r.active() && r.Ready() == nil })
}

func (b *bench) eventually(what string, cond func() bool) {
	b.t.Helper()
	servertest.Eventually(b.t, patience, what, cond)
}

// table reads the topic as a gateway does, from the start.
func (b *bench) table() *stream.Table[string] {
	b.t.Helper()
	table, err := stream.NewTable(b.stream, stream.TableOptions[string]{Topic: things, Decode: func(_ string, value []byte) (string, error) { return string(value), nil }})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- table.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("table: %v", err)
		}
	})
	return table
}

// difference says how a table differs from the view, "" if it does not.
func (b *bench) difference(table *stream.Table[string]) string {
	b.t.Helper()
	if err := table.Ready(); err != nil {
		return err.Error()
	}
	rows, err := b.conn.Query(b.t.Context(), `SELECT key, version, payload FROM things_v1 WHERE payload IS NOT NULL`)
	if err != nil {
		b.t.Fatal(err)
	}
	got := table.Snapshot()
	var key, payload string
	var version int64
	var differs error
	count := 0
	_, err = pgx.ForEachRow(rows, []any{&key, &version, &payload}, func() error {
		count++
		if e, ok := got[key]; !ok || e.Version != version || e.Value != payload {
			differs = errors.Join(differs, fmt.Errorf("%s: table %v %+v, view %d %s", key, ok, e, version, payload))
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if count != len(got) {
		differs = errors.Join(differs, fmt.Errorf("table has %d, view %d", len(got), count))
	}
	if differs != nil {
		return differs.Error()
	}
	return ""
}

// equal waits until the table equals the view.
func (b *bench) equal(what string, table *stream.Table[string]) {
	b.t.Helper()
	last := ""
	deadline := time.Now().Add(patience)
	b.eventually(what+": the table to equal Postgres", func() bool {
		last = b.difference(table)
		if time.Until(deadline) < patience/10 && last != "" {
			b.t.Log(last)
		}
		return last == ""
	})
}

// records reads all records of a topic up to its present end.
func (b *bench) records(topic string) []*kgo.Record {
	b.t.Helper()
	name := b.stream.Topic(topic)
	ends, err := b.admin.ListEndOffsets(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	client, err := kgo.NewClient(append(b.stream.ClientOptions(), kgo.ConsumeTopics(name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	var total, read int64
	ends.Each(func(o kadm.ListedOffset) { total += o.Offset })
	var all []*kgo.Record
	for read < total {
		ctx, cancel := context.WithTimeout(b.t.Context(), patience)
		fetches := client.PollFetches(ctx)
		cancel()
		if err := fetches.Err(); err != nil {
			b.t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			read++
			if string(r.Key) != events.MirrorKey {
				all = append(all, r)
			}
		})
	}
	return all
}

func (b *bench) outboxLen() (n int) {
	b.t.Helper()
	if err := b.conn.QueryRow(b.t.Context(), `SELECT count(*) FROM outbox`).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// empty deletes all records, as an operator would: Kafka refuses that for a
// topic that is only compacted.
func (b *bench) empty() {
	b.t.Helper()
	name := b.stream.Topic(things)
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
	b.eventually("the records to be deleted", func() bool {
		answers, err := b.admin.DeleteRecords(b.t.Context(), ends.Offsets())
		return err == nil && answers.Error() == nil
	})
	policy("compact")
}
