package devserver

import (
	"context"
	"fmt"
	"time"
)

// awaitReady polls until the server answers or its process ends.
func (s *server) awaitReady(ctx context.Context, run *child) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-run.done:
			cancel(fmt.Errorf("it ended before it was ready (%v)", run.err))
		case <-ctx.Done():
		}
	}()
	err := AwaitReady(ctx, s.spec.ready)
	cancel(nil)
	<-watched
	return err
}

// AwaitReady repeats a probe until it returns nil or ctx is done; each try has two seconds. The error holds the last
// answer.
func AwaitReady(ctx context.Context, probe func(context.Context) error) error {
	const interval, limit = 25 * time.Millisecond, 2 * time.Second
	for {
		try, cancel := context.WithTimeout(ctx, limit)
		err := probe(try)
		cancel()
		if ctx.Err() == nil && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (last answer: %v)", context.Cause(ctx), err)
		case <-time.After(interval):
		}
	}
}
