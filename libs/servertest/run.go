package servertest

import (
	"context"
	"testing"
)

// Run runs what blocks until its context ends, such as a room's Run. The returned function ends it, waits, and fails the
// test where it returns an error; after the test that happens by itself. Calling it again does nothing.
func Run(t testing.TB, name string, run func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Cleanup(stop)
	return stop
}
