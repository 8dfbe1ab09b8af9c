//go:build integration

package indexer

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/libs/usagestore/elastic"
	"github.com/sluice-platform/sluice/schemas/events"
	"github.com/sluice-platform/sluice/schemas/events/deadletters"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

const patience60 = 60 * time.Second

// bench is a Kafka with the topics, a search server behind a proxy that can be
// cut, and a client.
type bench struct {
	t      *testing.T
	cfg    stream.Config
	proxy  *toxiproxy.Proxy
	direct *elastic.Store // past the proxy
	store  *elastic.Store // through it
	client *kgo.Client
}

func newBench(t *testing.T) *bench {
	t.Helper()
	brokers, prefix := servertest.Kafka(t)
	search := servertest.Search(t)
	b := &bench{t: t, cfg: stream.Config{Brokers: brokers, TopicPrefix: prefix}}
	b.proxy = newProxy(t, search.URL)
	b.direct = b.newStore(search, search.URL)
	b.store = b.newStore(search, "http://"+b.proxy.Listen)
	topics, err := events.Topics()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.EnsureTopics(t.Context(), b.cfg, topics, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	b.client, err = kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.Close)
	return b
}

func (b *bench) newStore(search servertest.SearchServer, at string) *elastic.Store {
	b.t.Helper()
	s, err := elastic.New(elastic.Config{URL: at, Flavor: search.Flavor, IndexPrefix: search.IndexPrefix + "usage"})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func newProxy(t *testing.T, upstream string) *toxiproxy.Proxy {
	t.Helper()
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "search", "127.0.0.1:0", u.Host)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// start runs an indexer; the returned function stops it and waits.
func (b *bench) start(store usagestore.Store) (s *Service, stop func()) {
	b.t.Helper()
	cfg := DefaultConfig()
	cfg.BatchSize = 50
	s, err := New(cfg, Deps{Store: store, Stream: b.cfg, Log: slog.New(slog.NewTextHandler(b.t.Output(), nil))})
	if err != nil {
		b.t.Fatal(err)
	}
	return s, servertest.Run(b.t, "indexer", s.Run)
}

func event(n int) usage.Event {
	return usage.Event{ID: fmt.Sprintf("0198-%05d", n), TS: time.Now().UTC().Truncate(time.Millisecond), TenantID: fmt.Sprintf("tenant-%d", n%5),
		Service: "demo", Endpoint: "/demo/hello", Method: "GET", Decision: usage.DecisionAllow, StatusCode: 200, LatencyMs: 0.25, Gateway: "gw-1"}
}

func encode(t *testing.T, e usage.Event) []byte {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) produce(values ...[]byte) {
	b.t.Helper()
	var records []*kgo.Record
	for i, v := range values {
		records = append(records, &kgo.Record{Topic: b.cfg.Topic(usage.Topic), Key: fmt.Appendf(nil, "tenant-%d", i%5), Value: v})
	}
	if err := b.client.ProduceSync(b.t.Context(), records...).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) produceEvents(from, to int) {
	b.t.Helper()
	var values [][]byte
	for n := from; n < to; n++ {
		values = append(values, encode(b.t, event(n)))
	}
	b.produce(values...)
}

// documents are the ids that the store has, each once or the test fails.
func (b *bench) documents() map[string]bool {
	b.t.Helper()
	if err := b.direct.Refresh(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	ids, q := map[string]bool{}, usagestore.Query{Limit: usagestore.MaxLimit}
	for {
		page := b.search(q)
		for _, e := range page.Events {
			if ids[e.ID] {
				b.t.Fatalf("event %s is two documents", e.ID)
			}
			ids[e.ID] = true
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return ids
		}
	}
}

// search waits for shards that are only just being made.
func (b *bench) search(q usagestore.Query) (page usagestore.Page) {
	b.t.Helper()
	servertest.Eventually(b.t, patience60, "the store to be searched", func() bool {
		var err error
		page, err = b.direct.Search(b.t.Context(), q)
		if err != nil {
			b.t.Log(err)
		}
		return err == nil
	})
	return page
}

func (b *bench) waitDocuments(want int) {
	b.t.Helper()
	servertest.Eventually(b.t, patience60, fmt.Sprintf("%d documents", want), func() bool { return len(b.documents()) == want })
}

// uncommitted is how many records the group has not committed.
func (b *bench) uncommitted() int64 {
	b.t.Helper()
	return servertest.Uncommitted(b.t, b.client, b.cfg.Topic(usage.Topic), b.cfg.Topic(DefaultConfig().Group))
}

func (b *bench) waitCommitted() {
	b.t.Helper()
	servertest.Eventually(b.t, patience60, "all offsets to be committed", func() bool { return b.uncommitted() == 0 })
}

// letters reads want dead letters.
func (b *bench) letters(want int) (letters []deadletters.Letter) {
	b.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.cfg.Brokers...), kgo.ConsumeTopics(b.cfg.Topic(deadletters.Topic)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience60)
	defer cancel()
	for len(letters) < want {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			b.t.Fatalf("read %d of %d dead letters", len(letters), want)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var l deadletters.Letter
			if err := json.Unmarshal(r.Value, &l); err != nil || string(r.Key) != l.EventID {
				b.t.Errorf("dead letter %q under key %q: %v", r.Value, r.Key, err)
			}
			letters = append(letters, l)
		})
	}
	return letters
}
