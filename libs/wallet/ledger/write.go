package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/wallet"
)

// Kinds of row.
const (
	KindTopUp   = "topup"
	KindForfeit = "forfeit"
)

// Grant adds a grant to a locked wallet, as of its Used, and returns the wallet
// with it. The account's Granted already contains it.
func Grant(ctx context.Context, tx pgx.Tx, a Account, g wallet.Grant, note, actor string) (Account, error) {
	next := a
	next.Wallet = a.Add(g)
	_, err := tx.Exec(ctx, `INSERT INTO grants (id, wallet, amount, "left", priority, expires_at, note, granted_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		g.ID, a.Key, g.Amount, leftOf(next.Wallet, g.ID), g.Priority, timeOrNull(g.ExpiresAt), note, g.GrantedAt)
	if err != nil {
		return a, fmt.Errorf("add grant: %w", err)
	}
	return next, next.save(ctx, tx, entry{kind: KindTopUp, grant: g.ID, amount: g.Amount, at: g.GrantedAt, actor: actor})
}

// End takes a grant out of a locked wallet, as of its Used, of which that many
// units were forfeited, and returns the wallet without it.
func End(ctx context.Context, tx pgx.Tx, a Account, id string, forfeited int64, at time.Time, actor string) (Account, error) {
	next := a
	next.Wallet = a.Wallet.End(id, forfeited)
	next.Forfeited += forfeited
	if _, err := tx.Exec(ctx, `UPDATE grants SET ended_at = $2, "left" = 0 WHERE id = $1 AND ended_at IS NULL`, id, at); err != nil {
		return a, fmt.Errorf("end grant: %w", err)
	}
	return next, next.save(ctx, tx, entry{kind: KindForfeit, grant: id, amount: forfeited, at: at, actor: actor})
}

type entry struct {
	kind, grant, actor string
	amount             int64
	at                 time.Time
}

// save writes the wallet's state and a row of the ledger.
func (a *Account) save(ctx context.Context, tx pgx.Tx, e entry) error {
	ids, left := make([]string, len(a.Grants)), make([]int64, len(a.Grants))
	for i, g := range a.Grants {
		ids[i], left[i] = g.ID, g.Left
	}
	_, err := tx.Exec(ctx, `UPDATE grants SET "left" = n.units FROM unnest($1::text[], $2::bigint[]) AS n(id, units)
		WHERE grants.id = n.id AND grants."left" <> n.units`, ids, left)
	if err != nil {
		return fmt.Errorf("store grants: %w", err)
	}
	_, err = tx.Exec(ctx, `UPDATE wallets SET forfeited = $2, used = $3, debt = $4, returned = $5 WHERE key = $1`,
		a.Key, a.Forfeited, a.Used, a.Debt, a.Returned)
	if err != nil {
		return fmt.Errorf("store wallet: %w", err)
	}
	_, err = tx.Exec(ctx, `INSERT INTO wallet_ledger (wallet, at, kind, grant_id, amount, used, balance, actor) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		a.Key, e.at, e.kind, e.grant, e.amount, a.Used, a.Balance(), e.actor)
	if err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	return nil
}

func leftOf(w wallet.Wallet, id string) int64 {
	for _, g := range w.Grants {
		if g.ID == id {
			return g.Left
		}
	}
	return 0
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
