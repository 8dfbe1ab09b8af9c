package threshold

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/outbox"
)

const (
	// rowsPerTransaction keeps a transaction from delaying the WAL that rules
	// travel by.
	rowsPerTransaction = 200
	// attemptLimit ends a transaction that Postgres takes and never answers.
	attemptLimit = 20 * time.Second
)

// Flush stores everything that waits: rows, and the messages that announce
// them, in one transaction a part. Rows that fail wait on.
func (a *Announcer) Flush(ctx context.Context) error {
	select {
	case a.writing <- struct{}{}:
		defer func() { <-a.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	taken := a.take()
	rows := slices.SortedFunc(maps.Keys(taken), row.compare)
	for len(rows) > 0 {
		part := rows[:min(len(rows), rowsPerTransaction)]
		announced, err := a.store(ctx, part, taken)
		if err != nil {
			a.putBack(rows, taken)
			a.metrics.failures.Inc()
			return fmt.Errorf("store thresholds: %w", err)
		}
		a.metrics.reached.Add(float64(announced))
		a.remember(part)
		rows = rows[len(part):]
	}
	return nil
}

// store inserts rows and announces those that are new, in one transaction.
func (a *Announcer) store(ctx context.Context, rows []row, observed map[row]*observation) (announced int, err error) {
	err = pgx.BeginFunc(ctx, a.o.Pool, func(tx pgx.Tx) error {
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
