package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/keeper/internal/restore"
	"github.com/sluice-platform/sluice/services/keeper/internal/threshold"
)

// attemptLimit ends a checkpoint that Postgres takes and never answers.
const attemptLimit = 20 * time.Second

// Service is one keeper.
type Service struct {
	cfg     Config
	deps    Deps
	metrics *metrics
	group   *stream.Group
	fold    *fold
	// thresholds announces what charges reached.
	thresholds *threshold.Announcer
	restore    *restore.Restorer
	forfeits   *forfeiter

	// writing has one place: whoever holds it has taken counters out of the
	// fold and not yet written or given them back.
	writing chan struct{}
	dropped time.Time // when reservations that ended were dropped last; who writes owns it

	mu      sync.Mutex
	failing error // why the last checkpoint failed; nil when it did not
}

// New prepares a keeper.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if err := deps.complete(); err != nil {
		return nil, err
	}
	if deps.Redis == nil {
		return nil, errors.New("keeper: no Redis client given")
	}
	s := &Service{cfg: cfg, deps: deps, fold: newFold(), writing: make(chan struct{}, 1)}
	s.thresholds = threshold.New(threshold.Options{
		Pool: deps.Pool, MaxStored: cfg.MaxCounters, Log: deps.Log, Registerer: deps.Registerer,
	})
	s.metrics = newMetrics(deps.Registerer, func() float64 { return s.fold.age(deps.Now()).Seconds() })
	group, err := stream.NewGroup(deps.Stream, stream.GroupOptions{
		Group: cfg.Group, Topic: usage.Topic, Handle: s.handle,
		ManualCommit: true, BeforeRevoke: s.checkpoint,
		Registerer: deps.Registerer, Log: deps.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("keeper: %w", err)
	}
	s.group = group
	s.restore = restore.New(restore.Options{
		Redis: deps.Redis, KeyPrefix: deps.KeyPrefix, Pool: deps.Pool, Unwritten: s.unwritten,
		Log: deps.Log, Registerer: deps.Registerer, Now: deps.Now,
	})
	s.forfeits = newForfeiter(deps)
	return s, nil
}

// Run folds and checkpoints until ctx ends; then it writes a last checkpoint,
// commits and returns nil. It does not end because Kafka or Postgres is away.
func (s *Service) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup // owned by Run, which waits for it
	work.Go(func() { s.checkpoints(ctx) })
	work.Go(func() { s.thresholds.Run(ctx) })
	work.Go(func() { s.restore.Run(ctx) })
	work.Go(func() { s.forfeits.run(ctx) })
	err := s.group.Run(ctx) // its last act is BeforeRevoke
	stop()
	work.Wait()
	if err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	return nil
}

// handle folds a batch. Records that cannot be decoded are the indexer's dead
// letters; here they are counted.
func (s *Service) handle(_ context.Context, batch []stream.Record) error {
	if n := max(s.fold.size(), s.thresholds.Waiting()); n >= s.cfg.MaxCounters {
		return fmt.Errorf("%d counters wait for Postgres (keeper.maxCounters): reading pauses", n)
	}
	for _, r := range batch {
		var e usage.Event
		if err := json.Unmarshal(r.Value, &e); err != nil {
			s.metrics.bad.Inc()
			s.deps.Log.Warn("usage event cannot be read and is not folded",
				"topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "cause", err)
			continue
		}
		if bad := s.fold.event(e, r.Timestamp); bad > 0 {
			s.metrics.bad.Add(float64(bad))
			s.deps.Log.Warn("usage event has charges without a counter or with negative totals, or a reservation that none is; they are not folded",
				"event", e.ID, "partition", r.Partition, "offset", r.Offset, "charges", bad)
		}
		s.observe(&e)
		s.metrics.events.Inc()
	}
	s.metrics.pending.Set(float64(s.fold.size()))
	return nil
}

// observe passes an event's charges on to the thresholds, except those that
// Postgres could not hold.
func (s *Service) observe(e *usage.Event) {
	for i := range e.Charges {
		if c := &e.Charges[i]; foldable(*c) {
			s.thresholds.Observe(c, e.TS.UTC(), e.ID)
		}
	}
}

// checkpoints writes one every checkpointEvery, and sooner after a failure.
func (s *Service) checkpoints(ctx context.Context) {
	pause := backoff.Backoff{Min: min(time.Second, s.cfg.CheckpointEvery), Max: s.cfg.CheckpointEvery}
	next := time.NewTimer(s.cfg.CheckpointEvery)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		wait := s.cfg.CheckpointEvery
		if err := s.checkpointAndCommit(ctx); err != nil && ctx.Err() == nil {
			s.deps.Log.Warn("checkpoint failed and is tried again", "error", err)
			wait = pause.Next()
		} else {
			pause.Reset()
		}
		next.Reset(wait)
	}
}

// checkpointAndCommit notes how far the group is before it takes what was
// folded: the fold holds everything up to there.
func (s *Service) checkpointAndCommit(ctx context.Context) error {
	handled := s.group.Handled()
	if err := s.checkpoint(ctx); err != nil {
		return err
	}
	return s.group.CommitTo(ctx, handled)
}

// checkpoint writes what was folded; the offsets are committed by the caller.
func (s *Service) checkpoint(ctx context.Context) error {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	counters, oldest := s.fold.take()
	reservations := s.fold.takeReservations()
	s.addOwed(ctx, counters)
	timer := prometheus.NewTimer(s.metrics.seconds)
	err := writeCheckpoint(ctx, s.deps.Pool, counters, s.deps.Now(), s.metrics.rows)
	if err == nil {
		err = s.writeReservations(ctx, reservations)
	}
	timer.ObserveDuration()
	if err != nil {
		s.fold.giveBack(counters, oldest)
		s.fold.giveBackReservations(reservations)
		s.metrics.failures.Inc()
	} else {
		s.metrics.last.Set(float64(s.deps.Now().UnixMilli()) / 1000)
		err = s.thresholds.Flush(ctx)
	}
	s.metrics.pending.Set(float64(s.fold.size()))
	s.mu.Lock()
	s.failing = err
	s.mu.Unlock()
	return err
}

// writeReservations writes what was folded of reservations, and once an hour drops
// rows that no restore needs.
func (s *Service) writeReservations(ctx context.Context, all []reserve.Kept) error {
	if err := writeReservations(ctx, s.deps.Pool, all); err != nil {
		return err
	}
	now := s.deps.Now()
	if len(all) == 0 || now.Sub(s.dropped) < time.Hour {
		return nil
	}
	if err := dropReservations(ctx, s.deps.Pool, now); err != nil {
		return err
	}
	s.dropped = now
	return nil
}

// Ready is nil while this keeper is a member of its group and its last
// checkpoint, if there was one, succeeded.
func (s *Service) Ready() error {
	s.mu.Lock()
	failing := s.failing
	s.mu.Unlock()
	if failing != nil {
		return failing
	}
	return s.group.Ready()
}

// addOwed takes what Redis says of the counters that are owed into a checkpoint.
// Like every other source it can only raise a number, so a Redis that has lost
// them does no harm. One that is away is asked with the next checkpoint.
func (s *Service) addOwed(ctx context.Context, counters map[string]totals) {
	at := s.fold.owing()
	for names := range slices.Chunk(slices.Sorted(maps.Keys(at)), rowsPerTransaction) {
		found, err := redisstore.ReadTotals(ctx, s.deps.Redis, s.deps.KeyPrefix, names)
		if err != nil {
			s.deps.Log.DebugContext(ctx, "counters that are owed cannot be read yet", "counters", len(at), "error", err)
			return
		}
		for i, name := range names {
			t := at[name].totals
			t.consumed, t.refunded, t.forfeited = found[i].Consumed, found[i].Refunded, found[i].Forfeited
			if known, ok := counters[name]; ok {
				t = known.add(t)
			}
			counters[name] = t
		}
	}
	s.fold.looked(at, s.deps.Now())
}
