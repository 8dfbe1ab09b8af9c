package keeper

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// reservationKey is whose reservation, and which.
type reservationKey struct{ tenant, id string }

// maxRecordBytes is far above what a record of libs/reserve has.
const maxRecordBytes = 256 << 10

// reservationOf is what an event says of a reservation, false where it says
// nothing, or nothing that a gateway says.
func reservationOf(e *usage.Event) (reserve.Kept, bool) {
	s := e.ReservationState
	if s == nil || s.Attempt < 1 || s.State < 1 || s.EndedAt < 0 || len(s.Record) > maxRecordBytes || !reserve.ValidID(e.Reservation) ||
		strings.ContainsRune(e.TenantID+s.Record, 0) {
		return reserve.Kept{}, false
	}
	k := reserve.Kept{Tenant: e.TenantID, ID: e.Reservation, Attempt: s.Attempt, Number: s.State, EndedAt: s.EndedAt, Record: []byte(s.Record)}
	for _, place := range s.Uncharged {
		if place >= 0 && place < 1<<16 {
			k.Uncharged = append(k.Uncharged, int(place))
		}
	}
	return k, true
}

// further takes in what another event says of a reservation: the newest attempt
// holds, and of one the furthest it has come to. The order does not matter.
func further(a, b reserve.Kept) reserve.Kept {
	switch {
	case a.Attempt > b.Attempt:
		return a
	case a.Attempt < b.Attempt:
		return b
	}
	a.Number, a.EndedAt = max(a.Number, b.Number), max(a.EndedAt, b.EndedAt)
	if len(a.Record) == 0 {
		a.Record = b.Record
	}
	if len(b.Uncharged) > len(a.Uncharged) {
		a.Uncharged = b.Uncharged
	}
	return a
}

func (f *fold) reserve(k reserve.Kept) {
	at := reservationKey{k.Tenant, k.ID}
	if known, ok := f.reservations[at]; ok {
		k = further(known, k)
	}
	f.reservations[at] = k
}

// takeReservations empties the fold of reservations.
func (f *fold) takeReservations() []reserve.Kept {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]reserve.Kept, 0, len(f.reservations))
	for _, k := range f.reservations {
		all = append(all, k)
	}
	f.reservations = map[reservationKey]reserve.Kept{}
	return all
}

func (f *fold) giveBackReservations(all []reserve.Kept) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range all {
		f.reserve(k)
	}
}

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
func (s *Service) writeReservations(ctx context.Context, all []reserve.Kept) error {
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
		err := pgx.BeginFunc(ctx, s.deps.Pool, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
		if err != nil {
			return fmt.Errorf("write reservations: %w", err)
		}
	}
	now := s.deps.Now()
	if len(all) == 0 || now.Sub(s.dropped) < time.Hour {
		return nil
	}
	if _, err := s.deps.Pool.Exec(ctx, dropSQL, now.Add(-25*time.Hour).UnixMicro(), now.Add(-32*24*time.Hour).UnixMicro()); err != nil {
		return fmt.Errorf("drop reservations that ended: %w", err)
	}
	s.dropped = now
	return nil
}

const reservationsSQL = `SELECT tenant, id, attempt, state, ended_at, uncharged, record FROM reservations
WHERE (tenant, id) > ($1, $2) AND (ended_at = 0 OR ended_at > $3) ORDER BY tenant, id LIMIT $4`

// bringBackReservations brings back what rows and events that are not
// checkpointed yet know of reservations, a page at a time.
func (r *restorer) bringBackReservations(ctx context.Context, fresh []reserve.Kept) error {
	if err := reserve.Restore(ctx, r.deps.Redis, r.deps.KeyPrefix, r.deps.Now(), fresh); err != nil {
		return err
	}
	newer := make(map[reservationKey]reserve.Kept, len(fresh))
	for _, k := range fresh {
		newer[reservationKey{k.Tenant, k.ID}] = k
	}
	for after := (reservationKey{}); ; {
		rows, err := r.deps.Pool.Query(ctx, reservationsSQL, after.tenant, after.id, r.deps.Now().Add(-24*time.Hour).UnixMicro(), floorsAtOnce)
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
		if err := reserve.Restore(ctx, r.deps.Redis, r.deps.KeyPrefix, r.deps.Now(), page); err != nil {
			return err
		}
	}
}
