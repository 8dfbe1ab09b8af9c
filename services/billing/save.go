package billing

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/invoice"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// save writes what was drawn as what it is by now. Without lines, as of a free plan
// (plan.Free), it is nobody's invoice: none is written, and no number is spent on it.
func (s *Service) save(ctx context.Context, tx pgx.Tx, d *due, i sales.Invoice, now time.Time, wrote *written) error {
	isFinal := !now.Before(i.FinalFrom)
	switch {
	case len(i.Lines) > 0 && isFinal:
		return s.saveFinal(ctx, tx, d, i, now, wrote)
	case len(i.Lines) > 0:
		return s.saveDraft(ctx, tx, i, wrote)
	}
	if err := deleteDraft(ctx, tx, i.ID); err != nil || !isFinal {
		return err
	}
	return d.invoiced(ctx, tx)
}

// deleteDraft deletes the draft of an id; empty is none.
func deleteDraft(ctx context.Context, tx pgx.Tx, id string) error {
	if id == "" {
		return nil
	}
	if _, err := tx.Exec(ctx, `DELETE FROM invoices WHERE id = $1 AND status = 'draft'`, id); err != nil {
		return fmt.Errorf("delete a draft: %w", err)
	}
	return nil
}

// invoiced notes that the subscriptions of a period are invoiced up to its end.
func (d *due) invoiced(ctx context.Context, tx pgx.Tx) error {
	for _, sub := range d.shares {
		if _, err := tx.Exec(ctx, `INSERT INTO invoiced_subscriptions AS i (subscription, through) VALUES ($1, $2)
ON CONFLICT (subscription) DO UPDATE SET through = GREATEST(i.through, excluded.through)`, sub.ID, d.bounds.End); err != nil {
			return fmt.Errorf("note what is invoiced: %w", err)
		}
	}
	return nil
}

// saveDraft writes a draft where it differs from the one that is there.
func (s *Service) saveDraft(ctx context.Context, tx pgx.Tx, i sales.Invoice, wrote *written) error {
	i.Status = sales.InvoiceDraft
	changed, err := s.write(ctx, tx, &i)
	if changed {
		wrote.drafts++
	}
	return err
}

// saveFinal gives the invoice its number, and notes that its subscriptions are
// invoiced up to its end.
func (s *Service) saveFinal(ctx context.Context, tx pgx.Tx, d *due, i sales.Invoice, now time.Time, wrote *written) error {
	var n int64
	err := tx.QueryRow(ctx, `INSERT INTO invoice_numbers AS n (year, last) VALUES ($1, 1)
ON CONFLICT (year) DO UPDATE SET last = n.last + 1 RETURNING last`, now.Year()).Scan(&n)
	if err != nil {
		return fmt.Errorf("take an invoice number: %w", err)
	}
	at := now.Truncate(time.Millisecond)
	i.Status, i.Number, i.FinalizedAt = sales.InvoiceFinal, fmt.Sprintf("INV-%d-%06d", now.Year(), n), &at
	if _, err := s.write(ctx, tx, &i); err != nil {
		return err
	}
	if err := d.invoiced(ctx, tx); err != nil {
		return err
	}
	wrote.final++
	for _, l := range i.Lines {
		if l.Kind == sales.LineCorrection {
			wrote.corrections++
		}
	}
	return nil
}

// write puts the invoice in its row, which keeps its id from the first draft
// on; changed is false where the row says the same already.
func (s *Service) write(ctx context.Context, tx pgx.Tx, i *sales.Invoice) (changed bool, err error) {
	if i.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return false, fmt.Errorf("make an invoice id: %w", err)
		}
		i.ID = id.String()
	}
	total, err := invoice.Minor(i.Total, i.Currency)
	if err != nil {
		return false, err
	}
	text, err := json.Marshal(i)
	if err != nil {
		return false, fmt.Errorf("encode invoice: %w", err)
	}
	var number *string
	if i.Number != "" {
		number = &i.Number
	}
	tag, err := tx.Exec(ctx, `INSERT INTO invoices AS i (id, customer, currency, starts_at, ends_at, status, number, total, document, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (customer, currency, starts_at, ends_at) DO UPDATE SET
    status = excluded.status, number = excluded.number, total = excluded.total, document = excluded.document, updated_at = excluded.updated_at
WHERE i.status = 'draft' AND i.document <> excluded.document`,
		i.ID, i.Customer, i.Currency, i.Start, i.End, i.Status, number, total, text, s.deps.Now())
	if err != nil {
		return false, fmt.Errorf("write invoice: %w", err)
	}
	if i.Status == sales.InvoiceFinal && tag.RowsAffected() == 0 {
		return false, fmt.Errorf("invoice of %s from %s to %s is final, and was to be made so again", i.Customer, i.Start, i.End)
	}
	return tag.RowsAffected() > 0, nil
}
