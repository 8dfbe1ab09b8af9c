package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/schemas/events"
)

// Service is one relay.
type Service struct {
	cfg     Config
	deps    Deps
	metrics *metrics
	topics  map[string]events.Topic

	// parked are outbox rows that this session found it can never carry.
	parked map[int64]bool
	// generations are those of the topics in earlier sessions of this process.
	generations map[string]int64

	mu     sync.Mutex
	state  state
	reason error   // why nothing is carried at this moment
	flight *flight // of the running session, else nil
}

type state uint8

const (
	stopped state = iota
	standby
	starting
	streaming
)

// New prepares a relay.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if err := deps.complete(); err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	if cfg.Instance == "" {
		cfg.Instance = newInstance()
	}
	s := &Service{cfg: cfg, deps: deps, metrics: newMetrics(deps.Registerer), topics: map[string]events.Topic{}, parked: map[int64]bool{}, generations: map[string]int64{}}
	for _, t := range deps.Topics {
		s.topics[t.Name] = t
	}
	return s, nil
}

// Run carries until ctx ends; then it returns nil. Nothing that happens to
// Postgres or Kafka ends it: sessions are begun anew, after a pause.
func (s *Service) Run(ctx context.Context) error {
	pause := backoff.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for ctx.Err() == nil {
		began := time.Now()
		err := s.session(ctx)
		s.setState(stopped, err)
		s.metrics.active.Set(0)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, outbox.ErrSlotActive) { // lost the race for the slot
			pause.Reset()
			continue
		}
		if time.Since(began) > time.Minute {
			pause.Reset()
		}
		s.deps.Log.Warn("relay session ended", "error", err)
		if pause.Wait(ctx) != nil {
			break
		}
	}
	s.setState(stopped, nil)
	return nil
}

func (s *Service) setState(to state, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = to
	if to != starting { // why the last session ended is still the best answer
		s.reason = reason
	}
	if to != streaming {
		s.flight = nil
	}
}

// ackLimit is how long an acknowledgement may take before the relay says that
// it is not carrying.
const ackLimit = 5 * time.Second

// Ready is nil while rows are carried, and on a standby, whose work is to
// wait (metric sluice_relay_active tells them apart).
func (s *Service) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == standby:
		return nil
	case s.state == streaming:
		if waiting := s.flight.oldest(time.Now()); waiting > ackLimit {
			return fmt.Errorf("kafka: no acknowledgement for %v", waiting.Round(time.Second))
		}
		return nil
	case s.reason != nil:
		return s.reason
	case s.state == starting:
		return errors.New("reading the topics and reconciling")
	}
	return errors.New("not running")
}
