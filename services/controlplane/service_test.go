package controlplane_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/services/controlplane"
)

func TestNewRefusesAConfigByName(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	cases := []struct {
		name   string
		change func(*controlplane.Config)
		says   string
	}{
		{"listen", func(c *controlplane.Config) { c.Listen = "" }, "listen"},
		{"timeout", func(c *controlplane.Config) { c.RequestTimeout = 0 }, "requestTimeout"},
		{"no skew", func(c *controlplane.Config) { c.MaxClockSkew = 0 }, "maxClockSkew"},
		{"skew of days", func(c *controlplane.Config) { c.MaxClockSkew = 25 * time.Hour }, "maxClockSkew"},
		{"nothing ahead", func(c *controlplane.Config) { c.MaxAhead = time.Hour }, "maxAhead"},
		{"centuries ahead", func(c *controlplane.Config) { c.MaxAhead = 200 * 365 * 24 * time.Hour }, "maxAhead"},
		{"token name", func(c *controlplane.Config) { c.Tokens[0].Name = "" }, "tokens[0]: name"},
		{"token role", func(c *controlplane.Config) { c.Tokens[1].Role = "root" }, "tokens[1]: role"},
		{"token hash", func(c *controlplane.Config) { c.Tokens[1].SHA256 = adminToken }, "tokens[1]: sha256"},
		{"token twice", func(c *controlplane.Config) { c.Tokens[1].SHA256 = c.Tokens[0].SHA256 }, "used once"},
		{"hash twice, in capitals", func(c *controlplane.Config) { c.Tokens[1].SHA256 = strings.ToUpper(c.Tokens[0].SHA256) }, "used once"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig()
			c.change(&cfg)
			_, err := controlplane.New(cfg, controlplane.Deps{Pool: pool, Usage: noUsage{}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("says %v, want …%s…", err, c.says)
			}
		})
	}
	if _, err := controlplane.New(testConfig(), controlplane.Deps{Pool: pool}); err == nil {
		t.Fatal("New took no usage store")
	}
}

// panicUsage panics, as a bug of ours would.
type panicUsage struct{ noUsage }

func (panicUsage) Search(context.Context, usagestore.Query) (usagestore.Page, error) {
	panic("secret detail")
}

func TestPanicIsAnswered500AndCounted(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	reg := prometheus.NewRegistry()
	s, err := controlplane.New(testConfig(), controlplane.Deps{Pool: pool, Usage: panicUsage{}, Registerer: reg})
	if err != nil {
		t.Fatal(err)
	}
	got := request{method: "GET", path: "/v1/usage"}.do(t, s)
	if got.problem(t); got.Code != 500 || strings.Contains(got.Body.String(), "secret") {
		t.Fatalf("answers %d %s", got.Code, got.Body)
	}
	request{method: "GET", path: "/v1/rules?limit=0"}.do(t, s)
	request{method: "BREW", path: "/v1/rules", token: "-"}.do(t, s)
	want := `
# HELP sluice_http_panics_total Requests to the control plane's REST API that panicked and were answered with 500.
# TYPE sluice_http_panics_total counter
sluice_http_panics_total 1
# HELP sluice_http_requests_total Requests to the control plane's REST API, by route pattern, method and status code.
# TYPE sluice_http_requests_total counter
sluice_http_requests_total{code="400",method="GET",route="/v1/rules"} 1
sluice_http_requests_total{code="401",method="other",route="none"} 1
sluice_http_requests_total{code="500",method="GET",route="/v1/usage"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "sluice_http_panics_total", "sluice_http_requests_total"); err != nil {
		t.Fatal(err)
	}
}

// slowUsage answers when it is told to.
type slowUsage struct {
	noUsage
	entered, leave chan struct{}
}

func (u slowUsage) Search(context.Context, usagestore.Query) (usagestore.Page, error) {
	close(u.entered)
	<-u.leave
	return usagestore.Page{}, nil
}

func TestRunLetsRequestsInFlightFinish(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	slow := slowUsage{entered: make(chan struct{}), leave: make(chan struct{})}
	s, err := controlplane.New(testConfig(), controlplane.Deps{Pool: pool, Usage: slow})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	waitReady(t, s)

	answered := make(chan int, 1)
	go func() {
		req, err := http.NewRequest("GET", "http://"+s.Addr().String()+"/v1/usage", nil)
		if err != nil {
			t.Error(err)
		}
		req.Header.Set("Authorization", "Bearer "+readOnlyToken)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		res.Body.Close()
		answered <- res.StatusCode
	}()
	<-slow.entered
	stop()
	for s.Ready() == nil { // readiness goes off before the request is over
		if t.Context().Err() != nil {
			t.Fatal("stayed ready")
		}
		pause(t)
	}
	close(slow.leave)
	if got := <-answered; got != 200 {
		t.Errorf("the request in flight was answered %d", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// waitReady waits until s serves.
func waitReady(t *testing.T, s *controlplane.Service) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for s.Ready() != nil {
		if time.Now().After(deadline) {
			t.Fatal("did not become ready")
		}
		pause(t)
	}
}

// pause is the step of a bounded poll.
func pause(t *testing.T) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(2 * time.Millisecond):
	}
}
