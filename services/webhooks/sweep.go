package webhooks

import (
	"context"
	"fmt"
	"time"
)

const (
	sweepEvery = 15 * time.Second
	// pruneBatch bounds one deletion: a huge transaction delays rules.
	pruneBatch = 500
)

// sweepAll gives up what nobody could attempt in its time, drops what is too
// old to be kept, and counts the rest. Several processes may do so at once.
func (s *Service) sweepAll(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, databaseLimit)
		err := s.sweep(limited)
		cancel()
		if err != nil && ctx.Err() == nil {
			s.metrics.failures.Inc()
			s.deps.Log.Warn("old deliveries could not be swept", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Service) sweep(ctx context.Context) error {
	now := s.deps.Now()
	// Of webhooks that are paused or gone. The others' are given a last attempt
	// however late it is, and one under way is due later than now.
	tag, err := s.deps.Pool.Exec(ctx, `UPDATE webhook_deliveries SET state = 'dead', reason = CASE reason WHEN '' THEN 'its time ran out' ELSE reason END
		WHERE state = 'pending' AND give_up_at < $1 AND due_at <= $1 AND webhook NOT IN (SELECT w.key FROM `+open+`)`, now)
	if err != nil {
		return fmt.Errorf("give up deliveries: %w", err)
	}
	if n := tag.RowsAffected(); n > 0 {
		s.deps.Log.Warn("deliveries ran out of time and are dead letters", "count", n)
	}
	for {
		tag, err := s.deps.Pool.Exec(ctx, `DELETE FROM webhook_deliveries WHERE id IN (
			SELECT id FROM webhook_deliveries WHERE created_at < $1 AND state <> 'pending' LIMIT $2)`, now.Add(-s.cfg.Keep), pruneBatch)
		if err != nil {
			return fmt.Errorf("prune deliveries: %w", err)
		}
		if tag.RowsAffected() < pruneBatch {
			return s.count(ctx, now)
		}
	}
}

func (s *Service) count(ctx context.Context, now time.Time) error {
	var pending, dead int64
	var oldest *time.Time
	err := s.deps.Pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'dead'),
		min(created_at) FILTER (WHERE state = 'pending') FROM webhook_deliveries WHERE state <> 'delivered'`).Scan(&pending, &dead, &oldest)
	if err != nil {
		return fmt.Errorf("count deliveries: %w", err)
	}
	s.metrics.pending.Set(float64(pending))
	s.metrics.dead.Set(float64(dead))
	s.metrics.oldest.Set(0)
	if oldest != nil {
		s.metrics.oldest.Set(max(0, now.Sub(*oldest).Seconds()))
	}
	return nil
}
