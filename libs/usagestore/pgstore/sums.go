package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/usagestore"
)

const totalsSQL = `SELECT c->>'counter' COLLATE "C" AS counter, sum((c->>'amount')::bigint)::bigint, count(*)
FROM usage_events, jsonb_array_elements(event->'charges') AS c
WHERE ($1 = '' OR tenant_id = $1) AND ($2::timestamptz IS NULL OR ts >= $2) AND ($3::timestamptz IS NULL OR ts < $3)
  AND c->>'counter' COLLATE "C" > $4
GROUP BY 1 ORDER BY 1 LIMIT $5`

// Totals reads one counter more than the page holds, to know whether another
// page follows.
func (s *Store) Totals(ctx context.Context, q usagestore.TotalsQuery) (usagestore.TotalsPage, error) {
	limit := q.PageLimit()
	rows, err := s.pool.Query(ctx, totalsSQL, q.TenantID, nullable(q.From), nullable(q.To), q.After, limit+1)
	if err != nil {
		return usagestore.TotalsPage{}, fmt.Errorf("sum usage by counter: %w", err)
	}
	sums, err := pgx.CollectRows(rows, pgx.RowToStructByPos[usagestore.CounterSum])
	if err != nil {
		return usagestore.TotalsPage{}, fmt.Errorf("sum usage by counter: %w", err)
	}
	page := usagestore.TotalsPage{Sums: sums}
	if len(sums) > limit {
		page.Sums, page.Next = sums[:limit], sums[limit-1].Counter
	}
	return page, nil
}

const daysSQL = `SELECT to_char(ts AT TIME ZONE $5, 'YYYY-MM-DD'), c->>'counter' COLLATE "C", sum((c->>'amount')::bigint)::bigint
FROM usage_events, jsonb_array_elements(event->'charges') AS c
WHERE tenant_id = $1 AND ts >= $3 AND ts < $4 AND c->>'metric' = $2
GROUP BY 1, 2 ORDER BY 1, 2`

// Days sums by the days of the query's zone.
func (s *Store) Days(ctx context.Context, q usagestore.DaysQuery) ([]usagestore.DaySum, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, daysSQL, q.TenantID, q.Metric, q.From, q.To, q.Zone.String())
	if err != nil {
		return nil, fmt.Errorf("sum usage by day: %w", err)
	}
	sums, err := pgx.CollectRows(rows, pgx.RowToStructByPos[usagestore.DaySum])
	if err != nil {
		return nil, fmt.Errorf("sum usage by day: %w", err)
	}
	return sums, nil
}

// nullable is no bound where none is given.
func nullable(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
