//go:build integration

package webhooks

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/libs/webhook"
	"github.com/sluice-platform/sluice/schemas/events"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
)

const patience = 30 * time.Second

var noon = time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)

// clock is what the room takes for now. It begins at the real time, which
// signatures are held against.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) forward(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

// bench is a database with webhooks, and a clock.
type bench struct {
	t      *testing.T
	pool   *pgxpool.Pool
	sender *webhook.Sender
	clock  *clock
	stream stream.Config
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dsn := servertest.Postgres(t)
	if err := migrate.Up(t.Context(), dsn, "outbox", "controlplane", "webhooks"); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := &bench{t: t, pool: pool, clock: &clock{now: time.Now().Truncate(time.Second)}, stream: stream.Config{Brokers: []string{"127.0.0.1:1"}}}
	if b.sender, err = webhook.New(b.config().Config, b.clock.Now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.sender.Close)
	return b
}

func (b *bench) config() Config {
	cfg := DefaultConfig()
	cfg.Keys = []service.Secret{service.Secret("k1:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))}
	cfg.Allow, cfg.AllowHTTP = []string{"127.0.0.0/8"}, true
	cfg.PollEvery = 10 * time.Millisecond
	return cfg
}

func (b *bench) room() *Service {
	b.t.Helper()
	s, err := New(b.config(), Deps{
		Pool: b.pool, Sender: b.sender, Stream: b.stream, Now: b.clock.Now, Log: slog.New(slog.NewTextHandler(b.t.Output(), nil)),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// webhook stores one as the control plane does, and returns its secret.
func (b *bench) webhook(id, url, more string) service.Secret {
	b.t.Helper()
	b.exec(`INSERT INTO webhooks (key, version, document) VALUES ($1, 1, jsonb_build_object('id', $1::text, 'url', $2::text, 'enabled', true) || $3::jsonb)`, id, url, "{"+more+"}")
	plain, sealed, err := b.sender.NewSecret(id)
	if err != nil {
		b.t.Fatal(err)
	}
	b.exec(`INSERT INTO webhook_secrets (webhook, sealed, created_at) VALUES ($1, $2, now())`, id, sealed)
	return plain
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.pool.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// text is one value of the database, as text.
func (b *bench) text(sql string, args ...any) (text string) {
	b.t.Helper()
	if err := b.pool.QueryRow(b.t.Context(), `SELECT coalesce((`+sql+`)::text, '')`, args...).Scan(&text); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

func (b *bench) state(event string) string {
	b.t.Helper()
	return b.text(`SELECT string_agg(state || ' ' || attempts, ', ' ORDER BY webhook) FROM webhook_deliveries WHERE event_id = $1`, event)
}

func (b *bench) eventually(what string, cond func() bool) {
	b.t.Helper()
	servertest.Eventually(b.t, patience, what, cond)
}

// record is an event as the relay carries it.
func record(id, tenant string) stream.Record {
	data, err := json.Marshal(quotaevents.Reached{TenantID: tenant, Metric: "reports", Counter: "c", At: 80, Used: 81, DecisionID: "d"})
	if err != nil {
		panic(err)
	}
	e := quotaevents.Event{
		SpecVersion: quotaevents.SpecVersion, ID: id, Source: "/sluice/keeper", Type: quotaevents.TypeThresholdReached, Time: noon, DataContentType: quotaevents.ContentType,
	}
	r := stream.Record{Value: data, Key: []byte(tenant)}
	for name, value := range e.Headers() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return r
}

func (b *bench) fanOut(s *Service, records ...stream.Record) {
	b.t.Helper()
	if err := s.fanOut(b.t.Context(), records); err != nil {
		b.t.Fatal(err)
	}
}

// onKafka gives the bench a share of Kafka, with the topic.
func (b *bench) onKafka() *kgo.Client {
	b.t.Helper()
	brokers, prefix := servertest.Kafka(b.t)
	b.stream = stream.Config{Brokers: brokers, TopicPrefix: prefix}
	topics, err := events.Topics()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := stream.EnsureTopics(b.t.Context(), b.stream, topics, slog.New(slog.DiscardHandler)); err != nil {
		b.t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(client.Close)
	return client
}

// endpoint is a receiver. answer is asked for each request's status; it may
// block until the request ends.
type endpoint struct {
	*httptest.Server
	mu       sync.Mutex
	received []received
}

type received struct {
	header http.Header
	body   []byte
}

func newEndpoint(t *testing.T, answer func(r *http.Request, n int) int) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.received = append(e.received, received{r.Header, body})
		n := len(e.received)
		e.mu.Unlock()
		w.WriteHeader(answer(r, n))
	}))
	t.Cleanup(e.Close)
	return e
}

func always(status int) func(*http.Request, int) int {
	return func(*http.Request, int) int { return status }
}

func (e *endpoint) all() []received {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.received[:len(e.received):len(e.received)]
}

func (e *endpoint) ids() (ids []string) {
	for _, r := range e.all() {
		ids = append(ids, r.header.Get(webhook.HeaderID))
	}
	return ids
}

func eventID(n int) string { return fmt.Sprintf("event-%02d", n) }

// runDispatch runs the dispatcher alone: these tests hand events in themselves.
func runDispatch(s *Service) func(context.Context) error {
	return func(ctx context.Context) error { s.dispatch(ctx); return nil }
}
