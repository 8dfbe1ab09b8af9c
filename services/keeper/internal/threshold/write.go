package threshold

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/libs/outbox"
)

// store inserts rows and announces those that are new, in one transaction.
func store(ctx context.Context, pool *pgxpool.Pool, rows []row, observed map[row]*observation) (announced int, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		inserted, err := insert(ctx, tx, rows, observed)
		if err != nil {
			return err
		}
		for _, r := range rows {
			version, fresh := inserted[r.id()]
			if !fresh {
				continue
			}
			m, err := messageOf(r, observed[r], version)
			if err != nil {
				return err
			}
			if err := outbox.Append(ctx, tx, m); err != nil {
				return err
			}
		}
		announced = len(inserted)
		return nil
	})
	return announced, err
}

// insertSQL leaves a row that is there as it is, and returns only new ones.
// Column arming is the limit; reached is always true.
const insertSQL = `INSERT INTO thresholds (counter, threshold, arming, event_id, used, at, reached)
SELECT u.*, true FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[], $6::timestamptz[]) AS u
ON CONFLICT (counter, threshold, arming) DO NOTHING
RETURNING event_id, nextval('sluice_version')`

// insert returns the versions of the rows that are new, by event id.
func insert(ctx context.Context, tx pgx.Tx, rows []row, observed map[row]*observation) (map[uuid.UUID]int64, error) {
	n := len(rows)
	counters, names, limits := make([]string, n), make([]string, n), make([]string, n)
	ids, used, times := make([]uuid.UUID, n), make([]int64, n), make([]time.Time, n)
	for i, r := range rows {
		counters[i], names[i], limits[i] = r.counter, r.name(), r.limitName()
		ids[i], used[i], times[i] = r.id(), observed[r].used(), observed[r].at
	}
	result, err := tx.Query(ctx, insertSQL, counters, names, limits, ids, used, times)
	if err != nil {
		return nil, fmt.Errorf("insert thresholds: %w", err)
	}
	inserted := make(map[uuid.UUID]int64, n)
	var id uuid.UUID
	var version int64
	_, err = pgx.ForEachRow(result, []any{&id, &version}, func() error {
		inserted[id] = version
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("insert thresholds: %w", err)
	}
	return inserted, nil
}
