package sluice

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/services/sluice/config"
)

// unusedAddr is an address where nobody listens.
func unusedAddr(t *testing.T) string {
	t.Helper()
	port, err := devserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// A process whose Postgres is away lives and says why it is not ready; its end
// is as orderly as any.
func TestAProcessOutlivesAnAbsentPostgres(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Admin.Listen, cfg.Controlplane.Listen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Postgres.URL = service.Secret("postgres://u:hunter2@" + unusedAddr(t) + "/d")
	cfg.Usage.Store = config.UsagePostgres
	p, err := newProcess(cfg, slog.New(slog.DiscardHandler), []string{"controlplane"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()

	why := awaitReason(t, p, "refused")
	for _, want := range []string{"postgres: schema: ", "controlplane: waits for the schema in postgres"} {
		if !strings.Contains(why, want) {
			t.Errorf("reasons lack %q:\n%s", want, why)
		}
	}
	if strings.Contains(why, "hunter2") {
		t.Errorf("the reason holds the password: %s", why)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + p.admin.Addr() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz %d: an absent Postgres is no reason to be restarted", resp.StatusCode)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

// awaitReason polls until the process says, with this word, why it is not ready.
func awaitReason(t *testing.T, p *process, word string) string {
	t.Helper()
	limit := time.After(2 * time.Minute)
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		err := p.group.Ready()
		if err != nil && strings.Contains(err.Error(), word) {
			return err.Error()
		}
		select {
		case <-poll.C:
		case <-limit:
			t.Fatalf("reason %v never had %q", err, word)
		}
	}
}

func TestTheAdminPortInUseStopsTheStart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := config.Default()
	cfg.Admin.Listen = l.Addr().String()
	if _, err := newProcess(cfg, slog.New(slog.DiscardHandler), []string{"demo"}); err == nil || !strings.Contains(err.Error(), "admin port: ") {
		t.Errorf("error %v", err)
	}
}

func TestClientsRefuseWhatCannotWorkWithoutRevealingIt(t *testing.T) {
	t.Parallel()
	noCertificate := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(noCertificate, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &clients{log: slog.New(slog.DiscardHandler)}
	c.cfg.Postgres.URL = "postgres://u:hunter2@h:port/d"
	_, poolErr := c.Pool()
	withCA := func(file string) error {
		conn := config.RedisConnection{TLS: config.RedisTLS{Enabled: true, CAFile: file}}
		_, err := conn.Options("redis.counters.")
		return err
	}
	for want, err := range map[string]error{
		"postgres.url: ": poolErr, "no such file": withCA(noCertificate + ".missing"), "redis.counters.tls.caFile: no certificate in ": withCA(noCertificate),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	var plain config.RedisConnection
	if o, err := plain.Options("redis.counters."); err != nil || o.TLSConfig != nil {
		t.Errorf("without TLS: %v, %v", o, err)
	}
}
