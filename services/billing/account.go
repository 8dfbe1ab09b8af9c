package billing

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// account is what is known of a customer, as of one instant.
type account struct {
	customer      sales.Customer
	subscriptions []sales.Subscription
	plans         map[plan.Version]sales.Plan
	// through is up to when each subscription is on final invoices.
	through map[string]time.Time
	// finals are its final invoices, drafts the others; the oldest first.
	finals, drafts []sales.Invoice
}

// readAccount locks the customer's row: whoever changes what it has does so too.
func readAccount(ctx context.Context, tx pgx.Tx, id string) (*account, error) {
	a := &account{plans: map[plan.Version]sales.Plan{}, through: map[string]time.Time{}}
	var text []byte
	err := tx.QueryRow(ctx, `SELECT document FROM customers WHERE key = $1 AND document IS NOT NULL FOR UPDATE`, id).Scan(&text)
	if err != nil {
		return nil, fmt.Errorf("read customer: %w", err)
	}
	if err := json.Unmarshal(text, &a.customer); err != nil {
		return nil, fmt.Errorf("decode customer: %w", err)
	}
	if a.subscriptions, err = documents[sales.Subscription](ctx, tx,
		`SELECT document FROM subscriptions WHERE customer = $1 ORDER BY key`, id); err != nil {
		return nil, fmt.Errorf("read subscriptions: %w", err)
	}
	if err := a.readPlans(ctx, tx); err != nil {
		return nil, err
	}
	if err := a.readInvoices(ctx, tx); err != nil {
		return nil, err
	}
	return a, a.readThrough(ctx, tx)
}

func (a *account) readInvoices(ctx context.Context, tx pgx.Tx) error {
	all, err := documents[sales.Invoice](ctx, tx,
		`SELECT document FROM invoices WHERE customer = $1 ORDER BY ends_at, id`, a.customer.ID)
	if err != nil {
		return fmt.Errorf("read invoices: %w", err)
	}
	for _, i := range all {
		if i.Status == sales.InvoiceFinal {
			a.finals = append(a.finals, i)
		} else {
			a.drafts = append(a.drafts, i)
		}
	}
	return nil
}

func (a *account) readPlans(ctx context.Context, tx pgx.Tx) error {
	var ids []string
	for _, s := range a.subscriptions {
		for _, p := range s.Phases {
			ids = append(ids, p.Plan)
		}
	}
	plans, err := documents[sales.Plan](ctx, tx, `SELECT document FROM plan_versions WHERE plan = ANY ($1)`, ids)
	if err != nil {
		return fmt.Errorf("read plan versions: %w", err)
	}
	for _, p := range plans {
		a.plans[plan.Version{Plan: p.ID, Number: p.Version}] = p
	}
	return nil
}

func (a *account) readThrough(ctx context.Context, tx pgx.Tx) error {
	ids := make([]string, len(a.subscriptions))
	for i, s := range a.subscriptions {
		ids[i] = s.ID
	}
	rows, err := tx.Query(ctx, `SELECT subscription, through FROM invoiced_subscriptions WHERE subscription = ANY ($1)`, ids)
	if err != nil {
		return fmt.Errorf("read what is invoiced: %w", err)
	}
	var (
		id string
		at time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		a.through[id] = at.UTC()
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what is invoiced: %w", err)
	}
	return nil
}

// documents decodes a column of them.
func documents[T any](ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (out T, err error) {
		var text []byte
		if err := row.Scan(&text); err != nil {
			return out, err
		}
		return out, json.Unmarshal(text, &out)
	})
}
