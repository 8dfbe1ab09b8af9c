package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/spool"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
	"github.com/sluice-platform/sluice/services/gateway/internal/share"
)

// noon is when the stand's requests are made, unless a test says otherwise.
var noon = time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC)

// stand is a gate with a real spool, a real upstream and the reference model
// of the counters; only Kafka and Redis are not there.
type stand struct {
	t        testing.TB
	gate     *gate
	index    *rule.Index
	spool    *spool.Spool
	upstream *httptest.Server
	front    *httptest.Server
	log      *strings.Builder
	registry *prometheus.Registry // of the cache
	purges   purgeSink

	// What was put, by name and id.
	services   map[string]*routing.Service
	keyRecords map[string]*identify.Key

	mu   sync.Mutex
	seen []*http.Request
}

type standOptions struct {
	store    limit.Store // nil: limit.Model
	now      func() time.Time
	trusted  []string
	handler  http.HandlerFunc // of the upstream; nil answers 200
	catalog  []catalog.Service
	upstream proxy.Config
	identity IdentityConfig // but for trusted
	answers  AnswersConfig
	tokens   identify.Verifier
	// cache of answers: on Redis at the address, or alone, with a clock of its own.
	cacheRedis string
	cacheNow   func() time.Time
	cache      func(*CacheConfig)
	purges     purgeSink
	// Whether the purges are read, and how old they are; nil: they are, and recent.
	purgesReady func() error
	purgesAge   func() time.Duration
}

func newStand(t testing.TB, o standOptions) *stand {
	t.Helper()
	s := &stand{t: t, index: rule.New(), log: new(strings.Builder), registry: prometheus.NewRegistry(), services: map[string]*routing.Service{}, keyRecords: map[string]*identify.Key{}}
	s.upstream = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Clone(t.Context()))
		s.mu.Unlock()
		if o.handler != nil {
			o.handler(w, r)
		}
	}))
	t.Cleanup(s.upstream.Close)
	var err error
	if s.spool, err = spool.Open(spool.Options{Dir: t.TempDir(), SizeBytes: 1 << 20, Shards: 1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.spool.Close(); err != nil {
			t.Error(err)
		}
	})
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.now == nil {
		o.now = func() time.Time { return noon }
	}
	if o.store == nil {
		o.store = limit.NewModel(o.now)
	}
	log := slog.New(slog.NewTextHandler(&lockedWriter{to: s.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.gate = &gate{
		id: "gw-test", now: o.now, log: log, metrics: m, tables: func() error { return nil },
		identifier: identify.Identifier{Keys: identify.NewKeys(), Tokens: o.tokens},
		admission:  routing.Admission{KeysAge: func() time.Duration { return 0 }, MaxStaleness: o.identity.MaxStaleness},
		grants:     newGrantTable(), routes: routing.NewTable(log), rules: s.index, events: s.spool,
		charger:      charge.Charger{Store: o.store, Shares: share.New(share.Options{Now: o.now}), Journal: new(notebook), Unsettled: new(charge.Unsettled)},
		forwardToken: o.identity.JWT.ForwardToken, answers: o.answers,
	}
	if o.purgesReady == nil {
		o.purgesReady = func() error { return nil }
	}
	if o.purgesAge == nil {
		o.purgesAge = func() time.Duration { return 0 }
	}
	o.purges = purgeSink{httpcache.NewPurges()}
	s.purges = o.purges
	s.gate.cache = newTestCache(t, o, s.registry, log)
	for _, text := range o.trusted {
		s.gate.identifier.Trusted = append(s.gate.identifier.Trusted, netip.MustParsePrefix(text))
	}
	if o.upstream == (proxy.Config{}) {
		o.upstream = DefaultConfig().Upstream
	}
	transport := proxy.NewTransport(o.upstream)
	t.Cleanup(transport.CloseIdleConnections)
	s.gate.prepare(transport)
	if o.catalog == nil {
		o.catalog = []catalog.Service{{Name: "demo", Prefix: "/demo/"}}
	}
	for _, svc := range o.catalog {
		s.putService(svc)
	}
	s.front = httptest.NewServer(s.gate)
	t.Cleanup(s.front.Close)
	return s
}

// lockedWriter lets concurrent loggers share a builder.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// putService adds a service; without upstreams it gets the stand's.
func (s *stand) putService(svc catalog.Service) {
	s.t.Helper()
	if svc.Upstreams == nil {
		svc.Upstreams = []catalog.Upstream{{URL: s.upstream.URL}}
	}
	value, err := json.Marshal(svc)
	if err != nil {
		s.t.Fatal(err)
	}
	decoded, err := routing.DecodeService(svc.Name, value)
	if err != nil {
		s.t.Fatal(err)
	}
	s.services[svc.Name] = decoded
	s.gate.routes.Apply(stream.Change[*routing.Service]{Key: svc.Name, Entry: stream.Entry[*routing.Service]{Value: decoded}})
}

// putRule adds a rule given as JSON.
func (s *stand) putRule(text string) {
	s.t.Helper()
	if err := s.index.Put(parseRule(s.t, text)); err != nil {
		s.t.Fatal(err)
	}
}

func parseRule(t testing.TB, text string) rules.Rule {
	t.Helper()
	var r rules.Rule
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// putKey adds an API key whose secret is given.
func (s *stand) putKey(secret string, k keys.Key) {
	s.t.Helper()
	value, err := json.Marshal(withHash(secret, k))
	if err != nil {
		s.t.Fatal(err)
	}
	decoded, err := identify.DecodeKey(k.ID, value)
	if err != nil {
		s.t.Fatal(err)
	}
	s.keyRecords[k.ID] = decoded
	s.gate.identifier.Keys.Apply(stream.Change[*identify.Key]{Key: k.ID, Entry: stream.Entry[*identify.Key]{Value: decoded}})
}

func withHash(secret string, k keys.Key) keys.Key {
	hash := sha256.Sum256([]byte(secret))
	k.SHA256 = hex.EncodeToString(hash[:])
	if k.Status == "" {
		k.Status = keys.StatusActive
	}
	return k
}

// answer is a response that was read whole.
type answer struct {
	*http.Response
	body string
}

func (a answer) problem(t testing.TB) (p struct {
	Type, Title, Detail, DecisionID string
	Status                          int
	Violated                        []string `json:"violated-policies"`
}) {
	t.Helper()
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type is %q, body %s", got, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("the problem is no JSON: %v: %s", err, a.body)
	}
	if p.Status != a.StatusCode {
		t.Errorf("the problem says status %d, the answer %d", p.Status, a.StatusCode)
	}
	return p
}

// get sends GET path with headers given as name, value pairs.
func (s *stand) get(path string, headers ...string) answer {
	s.t.Helper()
	return do(s.t, http.MethodGet, s.front.URL+path, headers...)
}

func do(t testing.TB, method, url string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := clients.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{Response: res, body: string(body)}
}

// clients keeps a connection for each of many: with the two that are usual, each
// of some that ask at once would dial, and wait for that.
var clients = newClients()

func newClients() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 256
	return t
}

// events takes all events that were recorded since the last call.
func (s *stand) events() []usage.Event {
	s.t.Helper()
	var all []usage.Event
	for {
		records, mark := s.spool.Next(1000)
		if len(records) == 0 {
			return all
		}
		for _, r := range records {
			var e usage.Event
			if err := json.Unmarshal(r.Value, &e); err != nil {
				s.t.Fatalf("event is no JSON: %v: %s", err, r.Value)
			}
			if string(r.Key) != e.TenantID {
				s.t.Errorf("record key is %q, tenant %q", r.Key, e.TenantID)
			}
			all = append(all, e)
		}
		s.spool.Advance(mark)
	}
}

// event takes the one event that was recorded since the last call.
func (s *stand) event() usage.Event {
	s.t.Helper()
	all := s.events()
	if len(all) != 1 {
		s.t.Fatalf("%d events were recorded, want 1: %+v", len(all), all)
	}
	return all[0]
}

// requests are what the upstream has seen.
func (s *stand) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *stand) last() *http.Request {
	s.t.Helper()
	all := s.requests()
	if len(all) == 0 {
		s.t.Fatal("the upstream has seen no request")
	}
	return all[len(all)-1]
}

const loopback = "127.0.0.0/8"

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
