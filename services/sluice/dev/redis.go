package dev

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/sluice-platform/sluice/libs/devserver"
)

// redis is a redis-server, or one in this process where there is none.
type redis struct {
	server *devserver.Redis
	inside *ticking
	addr   string
}

func startRedis(ctx context.Context, dir string, port int, log *slog.Logger) (*redis, error) {
	if _, err := exec.LookPath("redis-server"); err == nil {
		server, err := devserver.StartRedis(ctx, devserver.RedisOptions{Dir: dir, Port: port, PortHint: hintRedis, AppendOnly: true})
		if err != nil {
			return nil, err
		}
		return &redis{server: server, addr: server.Addr()}, nil
	}
	log.Warn("no redis-server on this machine: counters live in this process and are NOT kept when it ends (Debian: apt-get install redis-server)")
	inside, err := startTicking(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("start redis in process: %w", err)
	}
	return &redis{inside: inside, addr: inside.server.Addr()}, nil
}

func (r *redis) stop(ctx context.Context) error {
	if r.server != nil {
		return r.server.Stop(ctx)
	}
	r.inside.stop()
	return nil
}

// ticking is a miniredis whose keys expire: by itself its clock for expiry
// stands still.
type ticking struct {
	server *miniredis.Miniredis
	end    chan struct{}
	ended  sync.WaitGroup
}

func startTicking(addr string) (*ticking, error) {
	t := &ticking{server: miniredis.NewMiniRedis(), end: make(chan struct{})}
	if err := t.server.StartAddr(addr); err != nil {
		return nil, err
	}
	t.ended.Go(func() {
		const step = 100 * time.Millisecond
		ticker := time.NewTicker(step)
		defer ticker.Stop()
		last := time.Now()
		for {
			select {
			case now := <-ticker.C:
				t.server.FastForward(now.Sub(last))
				last = now
			case <-t.end:
				return
			}
		}
	})
	return t, nil
}

func (t *ticking) stop() {
	close(t.end)
	t.ended.Wait()
	t.server.Close()
}
