package gateway

import (
	"context"
	"errors"
	"sync"
)

// parts are goroutines that live and end together; whoever started them waits
// for them with stop.
type parts struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
	// failed is closed when one ended by itself.
	failed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	errs []error
}

func start(ctx context.Context, runs ...func(context.Context) error) *parts {
	ctx, cancel := context.WithCancel(ctx)
	p := &parts{cancel: cancel, failed: make(chan struct{})}
	for _, run := range runs {
		p.wait.Go(func() {
			err := run(ctx)
			if ctx.Err() == nil {
				err = errors.Join(err, errEndedByItself)
				p.once.Do(func() { close(p.failed) })
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errs = append(p.errs, err)
		})
	}
	return p
}

// errEndedByItself marks a part that nobody told to stop.
var errEndedByItself = errors.New("a part of the gateway ended by itself")

// stop ends the parts, waits for them and returns their errors, nil after a
// clean stop.
func (p *parts) stop() error {
	p.cancel()
	p.wait.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}
