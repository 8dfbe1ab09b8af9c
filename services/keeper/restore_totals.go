package keeper

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/usage"
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
func (r *restorer) raise(ctx context.Context) (raised int, err error) {
	fresh := newFold()
	err = stream.ReadSince(ctx, r.deps.Stream, r.cfg.Group, usage.Topic, func(batch []stream.Record) error {
		for _, record := range batch {
			var e usage.Event
			if json.Unmarshal(record.Value, &e) == nil { // others are counted when they are folded
				fresh.event(e, record.Timestamp)
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read the usage that is not checkpointed yet: %w", err)
	}
	counters, _ := fresh.take()
	if err := r.bringBackReservations(ctx, fresh.takeReservations()); err != nil {
		return 0, err
	}
	n, err := r.raiseCheckpoints(ctx)
	raised += n
	if err != nil {
		return raised, err
	}
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(counters)), floorsAtOnce) {
		all := make([]redisstore.Known, 0, len(keys))
		for _, key := range keys {
			t := counters[key]
			all = append(all, knownOf(key, redisstore.Totals{Consumed: t.consumed, Refunded: t.refunded, Forfeited: t.forfeited}, t.carried))
		}
		n, err := r.raiseSome(ctx, all)
		raised += n
		if err != nil {
			return raised, err
		}
	}
	return raised, nil
}

// knownOf is what is known of a counter; carried is nil where it has no rollover.
func knownOf(counter string, t redisstore.Totals, carried *int64) redisstore.Known {
	k := redisstore.Known{Counter: counter, Totals: t, Rolls: carried != nil}
	if carried != nil {
		k.Carried = *carried
	}
	return k
}

const checkpointsSQL = `SELECT counter, consumed, refunded, forfeited, carried FROM checkpoints
WHERE counter > $1 AND (period IN ('', 'all') OR charged_at > $2) ORDER BY counter LIMIT $3`

// raiseCheckpoints goes through the rows that can still matter, a page at a time.
func (r *restorer) raiseCheckpoints(ctx context.Context) (raised int, err error) {
	for after, done := "", 0; ; {
		rows, err := r.deps.Pool.Query(ctx, checkpointsSQL, after, r.deps.Now().Add(-stillCounts), floorsAtOnce)
		if err != nil {
			return raised, fmt.Errorf("read checkpoints: %w", err)
		}
		page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k redisstore.Known, err error) {
			var (
				counter string
				t       redisstore.Totals
				carried *int64
			)
			err = row.Scan(&counter, &t.Consumed, &t.Refunded, &t.Forfeited, &carried)
			return knownOf(counter, t, carried), err
		})
		if err != nil {
			return raised, fmt.Errorf("read checkpoints: %w", err)
		}
		if len(page) == 0 {
			return raised, nil
		}
		n, err := r.raiseSome(ctx, page)
		raised += n
		if err != nil {
			return raised, err
		}
		after = page[len(page)-1].Counter
		if done += len(page); done%(100*floorsAtOnce) == 0 {
			r.deps.Log.Info("quotas are being restored", "done", done)
		}
	}
}

// raiseSome leaves out the periods that are over for good.
func (r *restorer) raiseSome(ctx context.Context, all []redisstore.Known) (int, error) {
	now := r.deps.Now()
	wanted := all[:0]
	for _, t := range all {
		if t.Expires = counter.Expires(t.Counter); t.Expires.IsZero() || t.Expires.After(now) {
			wanted = append(wanted, t)
		}
	}
	n, err := r.redis.Raise(ctx, wanted)
	r.metrics.raised.Add(float64(n))
	return n, err
}
