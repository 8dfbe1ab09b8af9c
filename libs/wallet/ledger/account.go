package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/wallet"
)

// Account is a wallet's row with its live grants.
type Account struct {
	wallet.Wallet
	// Key is tenant/metric.
	Key                string
	Tenant, Metric     string
	Granted, Forfeited int64
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// ErrNone is Lock's error for a wallet that nothing was granted to.
var ErrNone = errors.New("no such wallet")

// Lock reads a wallet and keeps others from changing it until tx ends.
func Lock(ctx context.Context, tx pgx.Tx, key string) (Account, error) {
	all, err := accounts(ctx, tx, `WHERE key = $1 AND document IS NOT NULL FOR UPDATE`, key)
	switch {
	case err != nil:
		return Account{}, err
	case len(all) == 0:
		return Account{}, fmt.Errorf("lock wallet %s: %w", key, ErrNone)
	}
	return all[0], nil
}

// List reads the wallets of a customer whose metric is behind after, up to that
// many, by metric.
func List(ctx context.Context, q Querier, customer, after string, most int) ([]Account, error) {
	return accounts(ctx, q, `WHERE customer = $1 AND metric > $2 ORDER BY metric LIMIT $3`, customer, after, most)
}

// Get reads one wallet, false if there is none.
func Get(ctx context.Context, q Querier, key string) (Account, bool, error) {
	all, err := accounts(ctx, q, `WHERE key = $1 AND document IS NOT NULL`, key)
	if err != nil || len(all) == 0 {
		return Account{}, false, err
	}
	return all[0], true, nil
}

func accounts(ctx context.Context, q Querier, where string, args ...any) ([]Account, error) {
	rows, err := q.Query(ctx, `SELECT key, customer, metric, granted, forfeited, used, debt, returned FROM wallets `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read wallets: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Account, error) {
		var a Account
		return a, row.Scan(&a.Key, &a.Tenant, &a.Metric, &a.Granted, &a.Forfeited, &a.Used, &a.Debt, &a.Returned)
	})
	if err != nil {
		return nil, fmt.Errorf("read wallets: %w", err)
	}
	return all, addGrants(ctx, q, all)
}

// addGrants reads the live grants of all of them at once.
func addGrants(ctx context.Context, q Querier, all []Account) error {
	at, keys := make(map[string]*Account, len(all)), make([]string, len(all))
	for i := range all {
		keys[i] = all[i].Key
		at[keys[i]] = &all[i]
	}
	rows, err := q.Query(ctx, `SELECT wallet, id, amount, "left", priority, expires_at, granted_at
		FROM grants WHERE wallet = ANY($1) AND ended_at IS NULL`, keys)
	if err != nil {
		return fmt.Errorf("read grants: %w", err)
	}
	var (
		key     string
		g       wallet.Grant
		expires *time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&key, &g.ID, &g.Amount, &g.Left, &g.Priority, &expires, &g.GrantedAt}, func() error {
		g.GrantedAt, g.ExpiresAt = g.GrantedAt.UTC(), time.Time{}
		if expires != nil {
			g.ExpiresAt = expires.UTC()
		}
		at[key].Grants = append(at[key].Grants, g)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read grants: %w", err)
	}
	return nil
}

// Due returns the wallets that hold a grant which has expired by that time and
// has not ended, up to that many, those that wait longest first.
func Due(ctx context.Context, q Querier, now time.Time, most int) ([]string, error) {
	rows, err := q.Query(ctx, `SELECT wallet FROM grants WHERE ended_at IS NULL AND expires_at <= $1
		GROUP BY wallet ORDER BY min(expires_at), wallet LIMIT $2`, now, most)
	if err != nil {
		return nil, fmt.Errorf("read due grants: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read due grants: %w", err)
	}
	return keys, nil
}
