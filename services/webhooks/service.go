package webhooks

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
)

// Service is one process that delivers. Any number may run.
type Service struct {
	cfg     Config
	deps    Deps
	metrics *metrics
	group   *stream.Group
	// wake gets a token when there may be something to claim.
	wake chan struct{}

	mu sync.Mutex
	// busy is what is under way from here, by webhook.
	busy    map[string]int
	failing error // why Postgres was not of use the last time; nil when it was
}

// New prepares the room; it starts nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if err := deps.complete(); err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg, deps: deps, metrics: newMetrics(deps.Registerer), wake: make(chan struct{}, 1), busy: map[string]int{}}
	group, err := stream.NewGroup(deps.Stream, stream.GroupOptions{
		Group: cfg.Group, Topic: quotaevents.Topic, Handle: s.fanOut, Registerer: deps.Registerer, Log: deps.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	s.group = group
	return s, nil
}

// Run fans out and delivers until ctx ends; then it gives what is under way a
// few seconds to end, and returns nil. It does not end because Kafka or
// Postgres is away.
func (s *Service) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup // owned by Run, which waits for it
	work.Go(func() { s.dispatch(ctx) })
	work.Go(func() { s.sweepAll(ctx) })
	err := s.group.Run(ctx)
	stop()
	work.Wait()
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	return nil
}

// Ready is nil while this process is a member of its group and Postgres could
// be used.
func (s *Service) Ready() error {
	s.mu.Lock()
	failing := s.failing
	s.mu.Unlock()
	if failing != nil {
		return failing
	}
	return s.group.Ready()
}

// note keeps what came of using Postgres for Ready, and reports it once.
func (s *Service) note(err error) {
	s.mu.Lock()
	before := s.failing
	s.failing = err
	s.mu.Unlock()
	if err == nil {
		return
	}
	s.metrics.failures.Inc()
	if before == nil {
		s.deps.Log.Warn("deliveries cannot be kept in Postgres and are tried again", "error", err)
	}
}

// poke lets the dispatcher look for deliveries.
func (s *Service) poke() {
	select {
	case s.wake <- struct{}{}:
	default: // it will already
	}
}
