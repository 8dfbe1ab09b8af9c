//go:build integration

package keeper

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

const patience = 60 * time.Second

// bench is a Kafka with the topic and a database of its own, behind a proxy
// that can be cut.
type bench struct {
	t      *testing.T
	cfg    stream.Config
	proxy  *toxiproxy.Proxy
	direct *pgxpool.Pool // past the proxy
	pool   *pgxpool.Pool // through it
	client *kgo.Client
	redis  redis.UniversalClient
	prefix string // of keys
}

func newBench(t *testing.T) *bench {
	t.Helper()
	brokers, prefix := servertest.Kafka(t)
	b := &bench{t: t, cfg: stream.Config{Brokers: brokers, TopicPrefix: prefix}}
	dsn := servertest.Postgres(t)
	if err := migrate.Up(t.Context(), dsn, "outbox", "keeper"); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	b.proxy = toxiproxy.NewProxy(server, "postgres", "127.0.0.1:0", u.Host)
	if err := b.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.proxy.Stop)
	b.direct = newPool(t, dsn)
	u.Host = b.proxy.Listen
	b.pool = newPool(t, u.String())
	topics, err := events.Topics()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.EnsureTopics(t.Context(), b.cfg, topics, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	addr, keys := servertest.Redis(t)
	b.redis, b.prefix = newRedisClient(t, addr), keys
	if b.client, err = kgo.NewClient(kgo.SeedBrokers(brokers...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.Close)
	return b
}

func newRedisClient(t *testing.T, addr string) redis.UniversalClient {
	t.Helper()
	o := &redis.UniversalOptions{Addrs: []string{addr}}
	redisstore.Configure(o, 2*time.Second)
	client := redis.NewUniversalClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func newPool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func (b *bench) newKeeper(every time.Duration) *Service {
	b.t.Helper()
	cfg := DefaultConfig()
	cfg.CheckpointEvery = every
	s, err := New(cfg, Deps{Pool: b.pool, Stream: b.cfg, Redis: b.redis, KeyPrefix: b.prefix, Log: slog.New(slog.NewTextHandler(b.t.Output(), nil))})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// start runs a keeper; the returned function stops it and waits.
func (b *bench) start(s *Service) (stop func()) {
	b.t.Helper()
	return servertest.Run(b.t, "keeper", s.Run)
}

// counterOf names tenants' quota counters as gateways do.
func counterOf(n int) string { return fmt.Sprintf("{t:tenant-%02d}:t::reports:quota:month:202607", n) }

// charge is the n-th charge of a counter, of one unit.
func charge(counter, n int) usage.Event {
	limit := int64(1000 + n)
	return usage.Event{
		ID: fmt.Sprintf("%02d-%05d", counter, n), TS: noon.Add(time.Duration(n) * time.Millisecond), TenantID: fmt.Sprintf("tenant-%02d", counter),
		Charges: []usage.Charge{{Counter: counterOf(counter), Metric: "reports", Amount: 1, Consumed: int64(n), Refunded: int64(n / 10), Limit: &limit}},
	}
}

func (b *bench) produce(all ...usage.Event) {
	b.t.Helper()
	var records []*kgo.Record
	for i, e := range all {
		value, err := json.Marshal(e)
		if err != nil {
			b.t.Fatal(err)
		}
		// Without regard to the tenant, so that partitions share counters.
		records = append(records, &kgo.Record{Topic: b.cfg.Topic(usage.Topic), Key: fmt.Appendf(nil, "%d", i), Value: value})
	}
	if err := b.client.ProduceSync(b.t.Context(), records...).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
}

// row is what checkpoints says of one counter.
type row struct {
	Tenant, Metric, Period        string
	Consumed, Refunded, Forfeited int64
	Limit                         *int64
}

func (b *bench) rows() map[string]row {
	b.t.Helper()
	rows, err := b.direct.Query(b.t.Context(), `SELECT counter, tenant, metric, period, consumed, refunded, forfeited, "limit" FROM checkpoints`)
	if err != nil {
		b.t.Fatal(err)
	}
	all := map[string]row{}
	var counter string
	var r row
	if _, err := pgx.ForEachRow(rows, []any{&counter, &r.Tenant, &r.Metric, &r.Period, &r.Consumed, &r.Refunded, &r.Forfeited, &r.Limit}, func() error {
		all[counter] = r
		r.Limit = nil
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	return all
}

// want is what counters 0 to counters-1 come to after their n-th charge.
func want(counters, n int) map[string]row {
	all := map[string]row{}
	for c := range counters {
		limit := int64(1000 + n)
		all[counterOf(c)] = row{Tenant: fmt.Sprintf("tenant-%02d", c), Metric: "reports", Period: "202607", Consumed: int64(n), Refunded: int64(n / 10), Limit: &limit}
	}
	return all
}

// uncommitted is how many records the group has not committed.
func (b *bench) uncommitted() int64 {
	b.t.Helper()
	return servertest.Uncommitted(b.t, b.client, b.cfg.Topic(usage.Topic), b.cfg.Topic(DefaultConfig().Group))
}

func (b *bench) waitCommitted() {
	b.t.Helper()
	servertest.Eventually(b.t, patience, "all offsets to be committed", func() bool { return b.uncommitted() == 0 })
}
