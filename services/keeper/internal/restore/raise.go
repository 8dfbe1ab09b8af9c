package restore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore"
	"github.com/sluice-platform/sluice/services/keeper/internal/counter"
)

// floorsAtOnce is how many quotas are handed to Redis in one go.
const floorsAtOnce = 500

// stillCounts is how long after its last charge a period may still matter: a
// year, another one that needs it for its rollover, and its late refunds.
const stillCounts = 2*366*24*time.Hour + counter.KeptAfterPeriod

// raise brings quotas up to what checkpoints and usage.v1 know of them. The
// offsets are asked for before the rows are read: what they say was committed
// is in the rows.
func (r *Restorer) raise(ctx context.Context, _ restore.Process) error {
	unwritten, err := r.o.Unwritten(ctx)
	if err != nil {
		return err
	}
	if err := r.raiseCheckpoints(ctx); err != nil {
		return err
	}
	for all := range slices.Chunk(unwritten, floorsAtOnce) {
		if err := r.raiseSome(ctx, all); err != nil {
			return err
		}
	}
	return nil
}

// KnownOf is what is known of a counter; carried is nil where it has no rollover.
func KnownOf(counter string, t redisstore.Totals, carried *int64) restore.Known {
	k := restore.Known{Counter: counter, Totals: t, Rolls: carried != nil}
	if carried != nil {
		k.Carried = *carried
	}
	return k
}

const checkpointsSQL = `SELECT counter, consumed, refunded, forfeited, carried FROM checkpoints
WHERE counter > $1 AND (period IN ('', 'all') OR charged_at > $2) ORDER BY counter LIMIT $3`

// raiseCheckpoints goes through the rows that can still matter, a page at a time.
func (r *Restorer) raiseCheckpoints(ctx context.Context) error {
	for after, done := "", 0; ; {
		rows, err := r.o.Pool.Query(ctx, checkpointsSQL, after, r.o.Now().Add(-stillCounts), floorsAtOnce)
		if err != nil {
			return fmt.Errorf("read checkpoints: %w", err)
		}
		page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k restore.Known, err error) {
			var (
				counter string
				t       redisstore.Totals
				carried *int64
			)
			err = row.Scan(&counter, &t.Consumed, &t.Refunded, &t.Forfeited, &carried)
			return KnownOf(counter, t, carried), err
		})
		if err != nil {
			return fmt.Errorf("read checkpoints: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		if err := r.raiseSome(ctx, page); err != nil {
			return err
		}
		after = page[len(page)-1].Counter
		if done += len(page); done%(100*floorsAtOnce) == 0 {
			r.o.Log.Info("quotas are being restored", "done", done)
		}
	}
}

// raiseSome leaves out the periods that are over for good.
func (r *Restorer) raiseSome(ctx context.Context, all []restore.Known) error {
	now := r.o.Now()
	wanted := make([]restore.Known, 0, len(all))
	for _, t := range all {
		if t.Expires = counter.Expires(t.Counter); t.Expires.IsZero() || t.Expires.After(now) {
			wanted = append(wanted, t)
		}
	}
	n, err := r.redis.Raise(ctx, wanted)
	r.metrics.raised.Add(float64(n))
	return err
}
