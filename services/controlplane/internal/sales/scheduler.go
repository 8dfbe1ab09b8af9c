package sales

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/jackc/pgx/v5"
)

const (
	// dueEvery is how often subscriptions that are due are looked for, and so how
	// late a quota is prorated whose last period begins. Ends need no hurry: the
	// rules end by themselves.
	dueEvery = time.Second
	// dueAgain is the pause after Postgres could not be asked, and how often those
	// that could not be settled are tried again.
	dueAgain = 10 * time.Second
	dueBatch = 100
	// dueActor is who the audit log names for what follows from the time alone.
	dueActor = "controlplane"
)

// RunScheduler settles subscriptions that are due, until ctx ends. Any number of
// control planes may: the second to lock one finds it settled. Those that cannot
// be settled are set aside for about dueAgain, so that however many there are they
// keep no other waiting.
func (s *Handlers) RunScheduler(ctx context.Context) {
	aside := []string{} // never nil: to Postgres that would be NULL, which excludes all
	again := time.NewTicker(dueAgain)
	defer again.Stop()
	for {
		found, failed, err := s.settleSome(ctx, aside)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.Log.WarnContext(ctx, "settle subscriptions that are due", "failed", len(failed), "error", err)
		}
		aside = append(aside, failed...)
		if found == dueBatch {
			continue // there may be more, and all come to their turn before any does again
		}
		pause := dueEvery
		if err != nil && len(failed) == 0 {
			pause = dueAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			aside = aside[:0]
		case <-time.After(pause):
		}
	}
}

// settleSome settles up to dueBatch subscriptions that are not set aside, each in
// a transaction of its own, and returns how many it found, which of them it could
// not settle, and why not the first of those.
func (s *Handlers) settleSome(ctx context.Context, aside []string) (found int, failed []string, err error) {
	rows, err := s.Store.Pool.Query(ctx, `SELECT customer, key FROM subscriptions WHERE due_at <= $1 AND key <> ALL($2) ORDER BY due_at LIMIT $3`,
		s.Store.Now(), aside, dueBatch)
	if err != nil {
		return 0, nil, fmt.Errorf("look for subscriptions: %w", err)
	}
	due, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v moving, err error) {
		return v, row.Scan(&v.customer, &v.subscription)
	})
	if err != nil {
		return 0, nil, fmt.Errorf("look for subscriptions: %w", err)
	}
	for _, v := range due {
		cause := s.settleOne(ctx, v)
		if cause == nil {
			continue
		}
		if failed = append(failed, v.subscription); err == nil {
			err = fmt.Errorf("subscription %s: %w", v.subscription, cause)
		}
	}
	return len(due), failed, err
}

// settleOne waits no longer for a customer that another transaction holds than a
// request would.
func (s *Handlers) settleOne(ctx context.Context, v moving) error {
	ctx, cancel := context.WithTimeout(ctx, s.RequestTimeout)
	defer cancel()
	return s.sell(ctx, dueActor, v.customer, api.NotFound(), func(x *sale) error {
		return x.settleAll(ctx, `key = $1 AND due_at <= $2`, v.subscription, x.at)
	})
}
