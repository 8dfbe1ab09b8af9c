package keeper

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/libs/reserve"
)

const keepSQL = `INSERT INTO reservations AS r (tenant, id, attempt, state, ended_at, uncharged, record)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (tenant, id) DO UPDATE SET
    attempt   = excluded.attempt,
    state     = CASE WHEN excluded.attempt > r.attempt THEN excluded.state ELSE GREATEST(r.state, excluded.state) END,
    ended_at  = CASE WHEN excluded.attempt > r.attempt THEN excluded.ended_at ELSE GREATEST(r.ended_at, excluded.ended_at) END,
    uncharged = CASE WHEN excluded.attempt > r.attempt OR cardinality(excluded.uncharged) > cardinality(r.uncharged) THEN excluded.uncharged ELSE r.uncharged END,
    record    = CASE WHEN excluded.attempt > r.attempt OR r.record = '' THEN excluded.record ELSE r.record END
WHERE excluded.attempt >= r.attempt`

// dropSQL removes what no restore needs: a day after the end, and of open ones
// what nobody has swept for 31 days.
const dropSQL = `DELETE FROM reservations WHERE ended_at > 0 AND ended_at < $1 OR ended_at = 0 AND attempt < $2`

// writeReservations writes what was folded, in the order of their keys, some a
// transaction.
func writeReservations(ctx context.Context, pool *pgxpool.Pool, all []reserve.Kept) error {
	slices.SortFunc(all, func(a, b reserve.Kept) int {
		if c := strings.Compare(a.Tenant, b.Tenant); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	for part := range slices.Chunk(all, rowsPerTransaction) {
		batch := &pgx.Batch{}
		for _, k := range part {
			uncharged := make([]int32, len(k.Uncharged))
			for i, place := range k.Uncharged {
				uncharged[i] = int32(place) //nolint:gosec // below 2^16
			}
			batch.Queue(keepSQL, k.Tenant, k.ID, k.Attempt, k.Number, k.EndedAt, uncharged, string(k.Record))
		}
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
		if err != nil {
			return fmt.Errorf("write reservations: %w", err)
		}
	}
	return nil
}

// dropReservations removes the rows that no restore needs.
func dropReservations(ctx context.Context, pool *pgxpool.Pool, now time.Time) error {
	if _, err := pool.Exec(ctx, dropSQL, now.Add(-25*time.Hour).UnixMicro(), now.Add(-32*24*time.Hour).UnixMicro()); err != nil {
		return fmt.Errorf("drop reservations that ended: %w", err)
	}
	return nil
}

const reservationsSQL = `SELECT tenant, id, attempt, state, ended_at, uncharged, record FROM reservations
WHERE (tenant, id) > ($1, $2) AND (ended_at = 0 OR ended_at > $3) ORDER BY tenant, id LIMIT $4`

// bringBackReservations brings back what rows and events that are not
// checkpointed yet know of reservations, a page at a time.
func (s *Service) bringBackReservations(ctx context.Context, fresh []reserve.Kept) error {
	if err := reserve.Restore(ctx, s.deps.Redis, s.deps.KeyPrefix, s.deps.Now(), fresh); err != nil {
		return err
	}
	newer := make(map[reservationKey]reserve.Kept, len(fresh))
	for _, k := range fresh {
		newer[reservationKey{k.Tenant, k.ID}] = k
	}
	for after := (reservationKey{}); ; {
		rows, err := s.deps.Pool.Query(ctx, reservationsSQL, after.tenant, after.id, s.deps.Now().Add(-24*time.Hour).UnixMicro(), rowsPerTransaction)
		if err != nil {
			return fmt.Errorf("read reservations: %w", err)
		}
		page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k reserve.Kept, err error) {
			var uncharged []int32
			var record string
			err = row.Scan(&k.Tenant, &k.ID, &k.Attempt, &k.Number, &k.EndedAt, &uncharged, &record)
			for _, place := range uncharged {
				k.Uncharged = append(k.Uncharged, int(place))
			}
			k.Record = []byte(record)
			return k, err
		})
		if err != nil {
			return fmt.Errorf("read reservations: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		last := page[len(page)-1]
		after = reservationKey{last.Tenant, last.ID}
		for i := range page {
			if k, ok := newer[reservationKey{page[i].Tenant, page[i].ID}]; ok {
				page[i] = further(page[i], k)
			}
		}
		if err := reserve.Restore(ctx, s.deps.Redis, s.deps.KeyPrefix, s.deps.Now(), page); err != nil {
			return err
		}
	}
}
