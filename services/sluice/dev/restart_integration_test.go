//go:build integration

package dev

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// buffer is a log that two goroutines may use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A server that is killed is started again on its port and data, each time.
func TestKilledServersAreStartedAgain(t *testing.T) {
	t.Parallel()
	postgres, err := devserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	redis, err := devserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	var log buffer
	dir := t.TempDir()
	servers, err := StartServers(t.Context(), ServerOptions{Dir: dir, PostgresPort: postgres, RedisPort: redis, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := (&Folder{Path: dir}).Reset(context.Background()); err != nil { // Postgres's may lie elsewhere
			t.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- servers.Run(ctx) }()

	for _, server := range []struct {
		name string
		pid  func() int
		ping func() error
	}{
		{"redis", servers.redis.server.PID, func() error { return devserver.PingRedis(ctx, servers.redis.addr) }},
		{"redis", servers.redis.server.PID, func() error { return devserver.PingRedis(ctx, servers.redis.addr) }},
		{"postgres", servers.postgres.PID, func() error { return devserver.PingPostgres(ctx, servers.postgres.URL()) }},
	} {
		restarts := strings.Count(log.String(), "runs again")
		if err := syscall.Kill(server.pid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		servertest.Eventually(t, 30*time.Second, server.name+" to be unready or back", func() bool {
			return servers.Ready() != nil || strings.Count(log.String(), "runs again") > restarts
		})
		servertest.Eventually(t, time.Minute, server.name+" to run again", func() bool {
			return strings.Count(log.String(), "runs again") > restarts && servers.Ready() == nil
		})
		if err := server.ping(); err != nil {
			t.Errorf("%s after its restart: %v", server.name, err)
		}
	}
	if want := `msg="a server has ended; starting it again" server=postgres log=`; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, log.String())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
