package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/devserver"
)

// Bounds of a restart.
const (
	restartLimit = time.Minute      // of one try
	steady       = 30 * time.Second // a server that lived so long has not failed in a row
)

// process is a server that runs as a child of this process.
type process interface {
	Done() <-chan struct{}
	Start(ctx context.Context) error
	LogFile() string
}

// nurse starts a server again each time its process ends.
type nurse struct {
	name    string
	server  process
	log     *slog.Logger
	trouble atomic.Pointer[error] // why the server is not up, nil while it is
}

// run blocks until ctx ends.
func (n *nurse) run(ctx context.Context) {
	pause := backoff.Backoff{Min: 200 * time.Millisecond, Max: 10 * time.Second}
	for began := time.Now(); ; began = time.Now() {
		select {
		case <-ctx.Done():
			return
		case <-n.server.Done():
		}
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steady {
			pause.Reset()
		}
		n.fail(fmt.Errorf("%s has ended; see %s", n.name, n.server.LogFile()))
		n.log.Warn("a server has ended; starting it again", "server", n.name, "log", n.server.LogFile())
		if !n.revive(ctx, &pause) {
			return
		}
		n.trouble.Store(nil)
		n.log.Warn("the server runs again", "server", n.name)
	}
}

// revive tries until the server answers; false when ctx ended first.
func (n *nurse) revive(ctx context.Context, pause *backoff.Backoff) bool {
	for {
		if pause.Wait(ctx) != nil {
			return false
		}
		try, cancel := context.WithTimeout(ctx, restartLimit)
		err := n.server.Start(try)
		cancel()
		if err == nil || errors.Is(err, devserver.ErrRunning) {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		n.fail(err)
		n.log.Error("the server does not start again", "server", n.name, "error", err)
	}
}

func (n *nurse) fail(err error) { n.trouble.Store(&err) }

// Run implements service.Runner: the servers are up before and stop after all
// modules; meanwhile one whose process ends is started again on its data.
func (s *Servers) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	for _, n := range s.nurses {
		watching.Go(func() { n.run(ctx) })
	}
	watching.Wait()
	<-ctx.Done()
	return nil
}

// Ready names a server that ended by itself.
func (s *Servers) Ready() error {
	var errs []error
	for _, n := range s.nurses {
		if err := n.trouble.Load(); err != nil {
			errs = append(errs, *err)
		}
	}
	return errors.Join(errs...)
}
