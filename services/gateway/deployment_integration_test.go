//go:build integration

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore/restoretest"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

const patience = 30 * time.Second

// deployment is Kafka with the topics, and a test's own relay: it publishes
// what a test says, with mirror records.
type deployment struct {
	t        testing.TB
	stream   stream.Config
	client   *kgo.Client
	upstream *httptest.Server
	seen     atomic.Int64
	log      *lockedLog
	// now is the clock of gateways that are run from now on; nil is time.Now.
	now func() time.Time
	// registerer gets the metrics of the gateway that is run next.
	registerer prometheus.Registerer
	// redis changes how those reach Redis; nil leaves it.
	redis func(*redis.UniversalOptions)

	version int64
	live    map[string]map[string]liveRecord // by topic and key
}

type liveRecord struct {
	version int64
	value   []byte
}

type lockedLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func newDeployment(t testing.TB, brokers []string, prefix string) *deployment {
	t.Helper()
	d := &deployment{
		t: t, stream: stream.Config{Brokers: brokers, TopicPrefix: prefix, ClientID: "gateway-test"},
		live: map[string]map[string]liveRecord{}, log: new(lockedLog),
	}
	topics, err := events.Topics()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.EnsureTopics(t.Context(), d.stream, topics, d.logger()); err != nil {
		t.Fatal(err)
	}
	if d.client, err = kgo.NewClient(append(d.stream.ClientOptions(), kgo.ProducerLinger(0))...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.client.Close)
	d.upstream = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { d.seen.Add(1) }))
	t.Cleanup(d.upstream.Close)
	return d
}

// onSharedKafka deploys on the shared broker with the demo service in the
// catalog and every topic mirrored.
func onSharedKafka(t testing.TB) *deployment {
	t.Helper()
	brokers, prefix := servertest.Kafka(t)
	d := newDeployment(t, brokers, prefix)
	d.put(catalog.Topic, "demo", catalog.Service{Name: "demo", Prefix: "/demo/", Upstreams: []catalog.Upstream{{URL: d.upstream.URL}}})
	d.mirror(rules.Topic)
	d.mirror(overrides.Topic)
	d.mirror(keys.Topic)
	d.mirror(grants.Topic)
	return d
}

func (d *deployment) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// put publishes a record and a mirror record after it.
func (d *deployment) put(topic, key string, value any) {
	d.t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		d.t.Fatal(err)
	}
	d.record(topic, key, text)
	d.mirror(topic)
}

func (d *deployment) putRule(text string) {
	d.t.Helper()
	d.put(rules.Topic, parseRule(d.t, text).ID, parseRule(d.t, text))
}

func (d *deployment) putKey(secret string, k keys.Key) {
	d.t.Helper()
	d.put(keys.Topic, k.ID, withHash(secret, k))
}

// remove publishes a tombstone and a mirror record after it.
func (d *deployment) remove(topic, key string) {
	d.t.Helper()
	d.record(topic, key, nil)
	d.mirror(topic)
}

func (d *deployment) record(topic, key string, value []byte) {
	d.t.Helper()
	d.version++
	if d.live[topic] == nil {
		d.live[topic] = map[string]liveRecord{}
	}
	if value == nil {
		delete(d.live[topic], key)
	} else {
		d.live[topic][key] = liveRecord{d.version, value}
	}
	now := time.Now()
	d.produce(&kgo.Record{
		Topic: d.stream.Topic(topic), Key: []byte(key), Value: value,
		Headers: stream.Stamp{Generation: 1, Version: d.version, CommittedAt: now, RelayedAt: now}.Headers(),
	})
}

func (d *deployment) mirror(topic string) {
	d.t.Helper()
	var sum uint64
	for key, r := range d.live[topic] {
		sum += stream.Digest(key, r.version, r.value)
	}
	value, err := json.Marshal(events.Mirror{
		Generation: 1, Origin: "test", Count: int64(len(d.live[topic])), Digest: stream.FormatDigest(sum), At: time.Now().UnixMicro(), Relay: "test",
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.produce(&kgo.Record{Topic: d.stream.Topic(topic), Key: []byte(events.MirrorKey), Value: value})
}

func (d *deployment) produce(r *kgo.Record) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	if err := d.client.ProduceSync(ctx, r).FirstErr(); err != nil {
		d.t.Fatal(err)
	}
}

// running is a gateway and how to stop it.
type running struct {
	*Service
	base string
	stop func() error // waits for Run; may be called again
}

// run starts a gateway with its own spool; edit may change the configuration.
// It waits until the port is open, not until it is ready.
func (d *deployment) run(id, redisAddr, keyPrefix string, edit func(*Config)) *running {
	d.t.Helper()
	options := &redis.UniversalOptions{Addrs: []string{redisAddr}}
	cfg := DefaultConfig()
	cfg.ID, cfg.Listen = id, "127.0.0.1:0"
	cfg.Identity.TrustedCIDRs = []string{loopback}
	cfg.Spool.Dir, cfg.Spool.SizeBytes = d.t.TempDir(), 4<<20
	// Long enough for a busy machine; tests of the budget set their own.
	cfg.Store = StoreConfig{KeyPrefix: keyPrefix, Budget: 5 * time.Second, Timeout: 5 * time.Second}
	if edit != nil {
		edit(&cfg)
	}
	if d.redis != nil {
		d.redis(options)
	}
	redisstore.Configure(options, cfg.Store.Timeout)
	client := redis.NewUniversalClient(options)
	stopKeeping := restoretest.Keep(d.t, client, keyPrefix)
	cfg.Cache.KeyPrefix = keyPrefix + "cache:"
	caching := &redis.UniversalOptions{Addrs: []string{redisAddr}}
	cache.ConfigureRedis(caching, time.Second)
	answers := redis.NewUniversalClient(caching)
	s, err := New(cfg, Deps{Redis: client, Cache: answers, Stream: d.stream, Log: d.logger(), Now: d.now, Registerer: d.registerer})
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(d.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		err := <-ended
		stopKeeping()
		return errors.Join(err, client.Close(), answers.Close())
	})
	d.t.Cleanup(func() {
		if err := stop(); err != nil {
			d.t.Errorf("gateway %s: %v", id, err)
		}
	})
	servertest.Eventually(d.t, patience, "the port", func() bool { return s.Addr() != "" })
	return &running{Service: s, base: "http://" + s.Addr(), stop: stop}
}

func (d *deployment) runReady(id, redisAddr, keyPrefix string, edit func(*Config)) *running {
	d.t.Helper()
	r := d.run(id, redisAddr, keyPrefix, edit)
	servertest.Eventually(d.t, patience, "gateway "+id+" to be ready", func() bool { return r.Ready() == nil })
	return r
}

// usage reads usage.v1 until it holds n events, and checks that ids are unique.
func (d *deployment) usage(n int) map[string]usage.Event {
	d.t.Helper()
	client, err := kgo.NewClient(append(d.stream.ClientOptions(),
		kgo.ConsumeTopics(d.stream.Topic(usage.Topic)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		d.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	all := map[string]usage.Event{}
	for len(all) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			d.t.Fatalf("%d of %d events: %v", len(all), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var e usage.Event
			if err := json.Unmarshal(r.Value, &e); err != nil {
				d.t.Fatalf("%v: %s", err, r.Value)
			}
			if bytes.Contains(r.Value, []byte("slk_")) {
				d.t.Errorf("an event carries a key: %s", r.Value)
			}
			if _, twice := all[e.ID]; twice {
				d.t.Errorf("event %s is there twice", e.ID)
			}
			if string(r.Key) != e.TenantID {
				d.t.Errorf("record key %q, tenant %q", r.Key, e.TenantID)
			}
			all[e.ID] = e
		})
	}
	return all
}
