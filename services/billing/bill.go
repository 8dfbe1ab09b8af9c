package billing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/invoice"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// bill works out everything of an account that is not final, the oldest first.
func (s *Service) bill(ctx context.Context, tx pgx.Tx, a *account, wrote *written) error {
	now := s.deps.Now().UTC()
	all, err := a.dues(now)
	if err != nil {
		return err
	}
	corrections, err := a.corrections(ctx, tx)
	if err != nil {
		return err
	}
	all = a.attach(all, corrections, now)
	if err := a.dropDrafts(ctx, tx, all); err != nil {
		return err
	}
	for _, d := range all {
		drawn, err := a.draw(ctx, tx, d, corrections)
		if err != nil {
			return err
		}
		drawn.ID, drawn.FinalFrom = a.draftID(d), d.bounds.End.Add(s.cfg.Grace)
		if err := s.save(ctx, tx, d, drawn, now, wrote); err != nil {
			return err
		}
	}
	return nil
}

// draftID is the id that the invoice has as a draft; it keeps it.
func (a *account) draftID(d *due) string {
	i := slices.IndexFunc(a.drafts, d.isFor)
	if i < 0 {
		return ""
	}
	return a.drafts[i].ID
}

// draw has one invoice worked out.
func (a *account) draw(ctx context.Context, tx pgx.Tx, d *due, corrections map[string][]invoice.Correction) (sales.Invoice, error) {
	used, err := a.used(ctx, tx, d)
	if err != nil {
		return sales.Invoice{}, err
	}
	topped, err := toppedUp(ctx, tx, a.customer.ID, d.bounds)
	if err != nil {
		return sales.Invoice{}, err
	}
	in := invoice.Input{
		Customer: a.customer, Currency: d.currency, Period: d.bounds, Held: d.held, Used: used, Topped: topped,
	}
	if d.corrects {
		in.Corrections = corrections[d.currency]
	}
	out, err := invoice.Draw(in)
	out.Timezone = d.zone
	return out, err
}

// corrections are what all final invoices are found to be off by, by currency.
func (a *account) corrections(ctx context.Context, tx pgx.Tx) (map[string][]invoice.Correction, error) {
	var counters []string
	for _, i := range a.finals {
		counters = append(counters, invoice.Counters(i)...)
	}
	now, err := checkpoints(ctx, tx, a.customer.ID, counters)
	if err != nil {
		return nil, err
	}
	out := map[string][]invoice.Correction{}
	for n, i := range a.finals {
		found, err := invoice.Correct(i, a.finals[n+1:], now, a.plans)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			out[i.Currency] = append(out[i.Currency], found...)
		}
	}
	return out, nil
}

// attach gives the corrections of a currency to its oldest invoice that is not
// final, or where the customer has none any more, to one of the month.
func (a *account) attach(all []*due, corrections map[string][]invoice.Correction, now time.Time) []*due {
	for currency := range corrections {
		i := slices.IndexFunc(all, func(d *due) bool { return d.currency == currency })
		if i < 0 {
			i = len(all)
			all = append(all, a.correcting(currency, now))
		}
		all[i].corrects = true
	}
	slices.SortStableFunc(all, byPeriod)
	return all
}

// correcting is an invoice of nothing but corrections: the draft that was begun
// for them, or a new one.
func (a *account) correcting(currency string, now time.Time) *due {
	for _, i := range a.drafts {
		if i.Currency == currency {
			return &due{bounds: period.Bounds{Start: i.Start, End: i.End}, zone: i.Timezone, currency: currency}
		}
	}
	return &due{bounds: monthOf(a.customer, now), zone: plan.Zone(sales.Plan{}, a.customer), currency: currency}
}

// dropDrafts deletes drafts of periods that are none any more: the plan's
// calendar changed, or what was to be corrected is not.
func (a *account) dropDrafts(ctx context.Context, tx pgx.Tx, all []*due) error {
	for _, i := range a.drafts {
		if slices.ContainsFunc(all, func(d *due) bool { return d.isFor(i) }) {
			continue
		}
		if err := deleteDraft(ctx, tx, i.ID); err != nil {
			return err
		}
	}
	return nil
}

// monthOf is the calendar month of the customer.
func monthOf(c sales.Customer, at time.Time) period.Bounds {
	calendar, err := period.New(period.Spec{Unit: period.NameMonth, Zone: c.Timezone})
	if err != nil {
		calendar = period.Month() // a zone that the customer no longer could have
	}
	return calendar.At(at)
}

// toppedUp sums what was topped up within a period, by metric.
func toppedUp(ctx context.Context, tx pgx.Tx, customer string, b period.Bounds) (map[string]int64, error) {
	rows, err := tx.Query(ctx, `SELECT w.metric, sum(l.amount)::bigint FROM wallet_ledger l JOIN wallets w ON w.key = l.wallet
WHERE w.customer = $1 AND l.kind = 'topup' AND l.at >= $2 AND l.at < $3 GROUP BY 1`, customer, b.Start, b.End)
	if err != nil {
		return nil, fmt.Errorf("read top-ups: %w", err)
	}
	out := map[string]int64{}
	var (
		metric string
		amount int64
	)
	_, err = pgx.ForEachRow(rows, []any{&metric, &amount}, func() error {
		out[metric] = amount
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read top-ups: %w", err)
	}
	return out, nil
}
