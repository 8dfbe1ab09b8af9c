package keeper

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/services/keeper/internal/counter"
)

// rowsPerTransaction keeps a checkpoint from delaying what rules travel by: a
// transaction reaches the WAL's readers whole, at its end.
const rowsPerTransaction = 500

// A row is raised only where a number grows or a newer charge is known, so
// that a replay writes nothing.
const raiseSQL = `INSERT INTO checkpoints AS c (counter, tenant, metric, period, consumed, refunded, forfeited, carried, "limit", charged_at, updated_at)
SELECT n.*, $11::timestamptz
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::timestamptz[]) AS n
ON CONFLICT (counter) DO UPDATE SET
    consumed   = GREATEST(c.consumed, excluded.consumed),
    refunded   = GREATEST(c.refunded, excluded.refunded),
    forfeited  = GREATEST(c.forfeited, excluded.forfeited),
    carried    = GREATEST(c.carried, excluded.carried),
    metric     = CASE WHEN excluded.charged_at >= c.charged_at THEN excluded.metric ELSE c.metric END,
    "limit"    = CASE WHEN excluded.charged_at >= c.charged_at THEN excluded."limit" ELSE c."limit" END,
    charged_at = GREATEST(c.charged_at, excluded.charged_at),
    updated_at = excluded.updated_at
WHERE excluded.consumed > c.consumed OR excluded.refunded > c.refunded OR excluded.forfeited > c.forfeited
   OR excluded.charged_at > c.charged_at OR excluded.carried IS NOT NULL AND c.carried IS NULL`

// writeCheckpoint raises the rows of the counters, in the order of their keys.
// What an earlier transaction wrote before an error may be written again.
func writeCheckpoint(ctx context.Context, pool *pgxpool.Pool, counters map[string]totals, now time.Time, written prometheus.Counter) error {
	keys := slices.Sorted(maps.Keys(counters))
	for part := range slices.Chunk(keys, rowsPerTransaction) {
		if err := writePart(ctx, pool, part, counters, now); err != nil {
			return fmt.Errorf("write checkpoint: %w", err)
		}
		written.Add(float64(len(part)))
	}
	return nil
}

func writePart(ctx context.Context, pool *pgxpool.Pool, keys []string, counters map[string]totals, now time.Time) error {
	n := len(keys)
	tenants, metrics, periods := make([]string, n), make([]string, n), make([]string, n)
	consumed, refunded, forfeited := make([]int64, n), make([]int64, n), make([]int64, n)
	carried, limits, charged := make([]*int64, n), make([]*int64, n), make([]time.Time, n)
	for i, key := range keys {
		t := counters[key]
		tenants[i], metrics[i], periods[i] = counter.Tenant(key), t.metric, counter.Period(key)
		consumed[i], refunded[i], forfeited[i] = t.consumed, t.refunded, t.forfeited
		carried[i], limits[i], charged[i] = t.carried, t.limit, t.chargedAt
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, raiseSQL, keys, tenants, metrics, periods, consumed, refunded, forfeited, carried, limits, charged, now)
		return err
	})
}
