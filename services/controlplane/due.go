package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// dueEvery is how often subscriptions that are due are looked for, and so how
	// late a quota is prorated whose last period begins. Ends need no hurry: the
	// rules end by themselves.
	dueEvery = time.Second
	// dueAgain is the pause after a failure.
	dueAgain = 10 * time.Second
	dueBatch = 100
	// dueActor is who the audit log names for what follows from the time alone.
	dueActor = "controlplane"
)

// settleDue settles subscriptions that are due, until ctx ends. Any number of
// control planes may: the second to lock one finds it settled.
func (s *Service) settleDue(ctx context.Context) {
	for {
		pause := dueEvery
		settled, err := s.store.settleSome(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.deps.Log.WarnContext(ctx, "settle subscriptions that are due", "error", err)
			pause = dueAgain
		case settled == dueBatch:
			continue // there may be more
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// settleSome settles up to dueBatch subscriptions, each in a transaction of its own.
func (s *store) settleSome(ctx context.Context) (settled int, err error) {
	rows, err := s.pool.Query(ctx, `SELECT customer, key FROM subscriptions WHERE due_at <= $1 ORDER BY due_at LIMIT $2`, s.now(), dueBatch)
	if err != nil {
		return 0, fmt.Errorf("look for subscriptions: %w", err)
	}
	due, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v moving, err error) {
		return v, row.Scan(&v.customer, &v.subscription)
	})
	if err != nil {
		return 0, fmt.Errorf("look for subscriptions: %w", err)
	}
	var failed []error // one that cannot be settled keeps no other waiting
	for _, v := range due {
		err := s.sell(ctx, dueActor, v.customer, notFound(), func(x *sale) error {
			return x.settleAll(ctx, `key = $1 AND due_at <= $2`, v.subscription, x.at)
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("subscription %s: %w", v.subscription, err))
		}
	}
	return len(due), errors.Join(failed...)
}
