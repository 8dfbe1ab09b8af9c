package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Entry is one row of the ledger.
type Entry struct {
	// ID grows from row to row of a wallet.
	ID   int64
	At   time.Time
	Kind string // KindTopUp or KindForfeit
	// GrantID is what was granted or ended, and Amount how many units that was.
	GrantID string
	Amount  int64
	// Used is the net use, and Balance the balance, as they were known right
	// after it.
	Used, Balance int64
	// Actor is who did it: a token's name, or keeper.
	Actor string
	// Note, Priority and ExpiresAt are the grant's; zero is never.
	Note      string
	Priority  int
	ExpiresAt time.Time
}

// History returns rows of a wallet before one, the newest first; before 0 is
// the start.
func History(ctx context.Context, q Querier, key string, before int64, most int) ([]Entry, error) {
	return entries(ctx, q, `l.wallet = $1 AND ($2::bigint = 0 OR l.id < $2) ORDER BY l.id DESC LIMIT $3`, key, before, most)
}

// TopUp returns the row that granted a grant of a wallet, false if there is none.
func TopUp(ctx context.Context, q Querier, key, grant string) (Entry, bool, error) {
	found, err := entries(ctx, q, `l.wallet = $1 AND l.grant_id = $2 AND l.kind = $3`, key, grant, KindTopUp)
	if err != nil || len(found) == 0 {
		return Entry{}, false, err
	}
	return found[0], true, nil
}

func entries(ctx context.Context, q Querier, where string, args ...any) ([]Entry, error) {
	rows, err := q.Query(ctx, `SELECT l.id, l.at, l.kind, l.grant_id, l.amount, l.used, l.balance, l.actor, g.note, g.priority, g.expires_at
		FROM wallet_ledger l JOIN grants g ON g.id = l.grant_id WHERE `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Entry, error) {
		var e Entry
		var expires *time.Time
		err := row.Scan(&e.ID, &e.At, &e.Kind, &e.GrantID, &e.Amount, &e.Used, &e.Balance, &e.Actor, &e.Note, &e.Priority, &expires)
		if e.At = e.At.UTC(); expires != nil {
			e.ExpiresAt = expires.UTC()
		}
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	return all, nil
}
