//go:build integration

package devserver_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
)

func newClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: time.Second})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestRedisKeepsAppendOnlyDataAcrossFaults(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := servertest.StartRedisWith(t, devserver.RedisOptions{AppendOnly: true})
	client := newClient(t, server.Addr())
	faults := map[string]func() error{
		"stop": func() error { return server.Stop(ctx) },
		"kill": func() error { server.Kill(); return nil },
	}
	for name, fault := range faults {
		if err := client.Incr(ctx, "n:"+name).Err(); err != nil {
			t.Fatal(err)
		}
		pid := server.PID()
		if err := fault(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if processRuns(pid) {
			t.Fatalf("%s: process %d is still there", name, pid)
		}
		if err := client.Ping(ctx).Err(); err == nil {
			t.Fatalf("%s: the server still answers", name)
		}
		if err := server.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if got := client.Get(ctx, "n:"+name).Val(); got != "1" {
			t.Errorf("after %s: value %q, want 1", name, got)
		}
	}
}

func TestRedisWithoutAppendOnlyKeepsNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := servertest.StartRedis(t)
	client := newClient(t, server.Addr())
	if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if n := client.DBSize(ctx).Val(); n != 0 {
		t.Errorf("%d keys after a restart, want 0", n)
	}
}

func TestPausedRedisAnswersOnlyAfterResume(t *testing.T) {
	t.Parallel()
	server := servertest.StartRedis(t)
	client := newClient(t, server.Addr())
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := client.Ping(short).Err(); err == nil {
		t.Fatal("a paused server answered")
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, 10*time.Second, "an answer after Resume", func() bool {
		return client.Ping(t.Context()).Err() == nil
	})
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Fatalf("stop while paused: %v", err)
	}
}

func TestTakenPortIsNamed(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	_, err = devserver.StartRedis(t.Context(), devserver.RedisOptions{Dir: t.TempDir(), Port: port, PortHint: "--redis-port"})
	var portErr *devserver.PortTakenError
	if !errors.As(err, &portErr) {
		t.Fatalf("error %v, want a PortTakenError", err)
	}
	want := "redis: port " + strconv.Itoa(port) + " on 127.0.0.1 is taken: choose another with --redis-port, or stop what listens there"
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := devserver.StartRedis(t.Context(), devserver.RedisOptions{Dir: t.TempDir(), Args: []string{"--no-such-option", "1"}})
	if err == nil || !containsAll(err.Error(), "ended before it was ready", "no-such-option") {
		t.Errorf("error %v, want the end of the server's log", err)
	}
}
