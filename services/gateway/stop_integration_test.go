//go:build integration

package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
)

func redisOnPort(port int) devserver.RedisOptions { return devserver.RedisOptions{Port: port} }

// onOwnKafka deploys on an in-process broker, which a test may take away.
func onOwnKafka(t *testing.T) (*deployment, *kfake.Cluster) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	d := newDeployment(t, cluster.ListenAddrs(), "own.")
	d.put(catalog.Topic, "demo", catalog.Service{Name: "demo", Prefix: "/demo/", Upstreams: []catalog.Upstream{{URL: d.upstream.URL}}})
	d.mirror(rules.Topic)
	d.mirror(keys.Topic)
	d.mirror(grants.Topic)
	d.mirror(overrides.Topic)
	return d, cluster
}

// With Kafka away decisions go on, a stop is bounded, and the events wait on
// disk for the next start.
func TestKafkaAwayDelaysEventsOnly(t *testing.T) {
	t.Parallel()
	first, cluster := onOwnKafka(t)
	addr, prefix := servertest.Redis(t)
	spoolDir := t.TempDir()
	edit := func(c *Config) { c.Spool.Dir, c.Spool.DrainTimeout = spoolDir, 500*time.Millisecond }
	first.putRule(ruleJSON("ten", "tenant", "m", `{"algorithm":"fixedWindow","limit":10,`+year+`}`, ""))
	g := first.runReady("gw", addr, prefix, edit)
	cluster.Close()
	answered := map[string]int{}
	for range 30 {
		began := time.Now()
		a := do(t, http.MethodGet, g.base+"/demo/x", "X-Tenant-Id", "acme")
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("an answer without Kafka took %s", took)
		}
		answered[a.Header.Get(respond.HeaderDecisionID)] = a.StatusCode
	}
	if err := g.Ready(); err != nil {
		t.Errorf("Kafka away makes a running gateway unready: %v", err)
	}
	began := time.Now()
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}

	second, _ := onOwnKafka(t)
	second.runReady("gw", addr, prefix, edit)
	recorded := second.usage(len(answered))
	passed := 0
	for id, status := range answered {
		if recorded[id].StatusCode != status {
			t.Errorf("decision %s was answered %d, its event is %+v", id, status, recorded[id])
		}
		if status == 200 {
			passed++
		}
	}
	if passed != 10 {
		t.Errorf("%d passed, want 10", passed)
	}
}

func TestStopLetsRequestsFinishAndShipsTheirEvents(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}))
	t.Cleanup(slow.Close)
	d.put(catalog.Topic, "slow", catalog.Service{Name: "slow", Prefix: "/slow/", Upstreams: []catalog.Upstream{{URL: slow.URL}}})
	g := d.runReady("gw", addr, prefix, nil)
	answers := make(chan answer, 1)
	go func() { answers <- do(t, http.MethodGet, g.base+"/slow/x", "X-Tenant-Id", "acme") }()
	<-arrived
	stopped := make(chan error, 1)
	go func() { stopped <- g.stop() }()
	servertest.Eventually(t, patience, "readiness to go off", func() bool { return g.Ready() != nil })
	if err := g.Ready(); !strings.Contains(err.Error(), "draining") {
		t.Errorf("not ready because: %v", err)
	}
	close(release)
	a := <-answers
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if a.StatusCode != 200 {
		t.Errorf("the request under way was answered %d", a.StatusCode)
	}
	if e := d.usage(1)[a.Header.Get(respond.HeaderDecisionID)]; e.StatusCode != 200 || e.Service != "slow" {
		t.Errorf("event %+v", e)
	}
}

func TestTakenPortAndTakenSpoolAreNamed(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	g := d.runReady("gw", addr, prefix, nil)
	for setting, edit := range map[string]func(*Config){
		"gateway.listen":    func(c *Config) { c.Listen = g.Addr() },
		"gateway.spool.dir": func(c *Config) { c.Spool.Dir = g.cfg.Spool.Dir },
	} {
		cfg := g.cfg
		cfg.Listen, cfg.Spool.Dir = "127.0.0.1:0", t.TempDir()
		edit(&cfg)
		s, err := New(cfg, Deps{Redis: g.deps.Redis, Stream: d.stream, Log: d.logger()})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), setting) {
			t.Errorf("the error does not name %s: %v", setting, err)
		}
	}
}

func TestHTTP2WithoutTLSWhereItIsSwitchedOn(t *testing.T) {
	t.Parallel()
	d := onSharedKafka(t)
	addr, prefix := servertest.Redis(t)
	g := d.runReady("gw", addr, prefix, func(c *Config) { c.H2C = true })
	client := &http.Transport{Protocols: new(http.Protocols)}
	client.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(client.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.base+"/demo/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 || res.ProtoMajor != 2 || res.Header.Get(respond.HeaderDecisionID) == "" {
		t.Errorf("%s %d %v", res.Proto, res.StatusCode, res.Header)
	}
}
