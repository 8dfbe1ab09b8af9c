package indexer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// pruneLimit ends a pruning that the store takes and never answers.
const pruneLimit = 5 * time.Minute

// Service is one indexer.
type Service struct {
	cfg     Config
	deps    Deps
	metrics *metrics
	group   *stream.Group
	lag     lag

	// producer writes dead letters; it lives while Run does.
	producer *kgo.Client
	// settled are records of the batch at work that are documents or dead
	// letters already; it belongs to the group's handling goroutine.
	settled map[place]bool

	mu    sync.Mutex
	stall error // why the batch at work is not settled yet
}

// New prepares an indexer.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if err := deps.complete(); err != nil {
		return nil, err
	}
	if err := kgo.ValidateOpts(letterOptions(deps.Stream)...); err != nil {
		return nil, fmt.Errorf("indexer: dead letters: %w", err)
	}
	s := &Service{cfg: cfg, deps: deps, settled: map[place]bool{}}
	s.metrics = newMetrics(deps.Registerer, func() float64 { return s.lag.seconds(deps.Now()) })
	group, err := stream.NewGroup(deps.Stream, stream.GroupOptions{
		Group: cfg.Group, Topic: usage.Topic, Handle: s.handle, MaxBatch: cfg.BatchSize,
		OnRevoked:  func([]int32) { clear(s.settled) }, // never during Handle
		Registerer: deps.Registerer, Log: deps.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("indexer: %w", err)
	}
	s.group = group
	return s, nil
}

// Run indexes and prunes until ctx ends, then returns nil. It does not end
// because Kafka or the store is away.
func (s *Service) Run(ctx context.Context) error {
	producer, err := kgo.NewClient(letterOptions(s.deps.Stream)...)
	if err != nil {
		return fmt.Errorf("indexer: producer of dead letters: %w", err)
	}
	defer producer.Close()
	s.producer = producer

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() { // owned by Run, which waits for done
		defer close(done)
		s.pruneAll(ctx)
	}()
	err = s.group.Run(ctx)
	stop()
	<-done
	if err != nil {
		return fmt.Errorf("indexer: %w", err)
	}
	return nil
}

// pruneAll prunes at the start and then every PruneEvery. Several indexers may
// do so at once: a day that is gone is gone.
func (s *Service) pruneAll(ctx context.Context) {
	tick := time.NewTicker(s.cfg.PruneEvery)
	defer tick.Stop()
	for {
		s.prune(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Service) prune(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, pruneLimit)
	defer cancel()
	n, err := s.deps.Store.Prune(limited, s.cfg.RetentionDays, s.deps.Now())
	s.metrics.pruned.Add(float64(n))
	if err != nil && ctx.Err() == nil {
		s.deps.Log.Warn("old usage events are not all deleted; tried again at the next turn", "error", err)
	} else if n > 0 {
		s.deps.Log.Info("deleted old usage events", "units", n, "retentionDays", s.cfg.RetentionDays)
	}
}

func (s *Service) setStall(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stall = err
}

// Ready is nil while this indexer is a member of its group and nothing keeps
// it from settling events; else it says what does.
func (s *Service) Ready() error {
	s.mu.Lock()
	stall := s.stall
	s.mu.Unlock()
	if stall != nil {
		return stall
	}
	return s.group.Ready()
}
