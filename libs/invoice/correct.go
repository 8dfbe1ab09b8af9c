package invoice

import (
	"fmt"
	"slices"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// Counters lists the counters that a final invoice's usage was worked out from.
func Counters(i sales.Invoice) []string {
	var all []string
	for _, l := range i.Lines {
		if l.Kind == sales.LineUsage && l.Counter != "" {
			all = append(all, l.Counter)
		}
	}
	return all
}

// Correct compares a final invoice with what is known of its counters now, and
// returns what it is off by, metric by metric in the order of its lines. later
// are the final invoices after it: what they corrected is not corrected again.
// A counter that nothing is known of is passed over, and so is one whose numbers
// are lower than they were: totals only grow.
func Correct(final sales.Invoice, later []sales.Invoice, now map[string]Use, plans map[plan.Version]sales.Plan) ([]Correction, error) {
	digits, ok := plan.MinorDigits(final.Currency)
	if !ok {
		return nil, fmt.Errorf("invoice %s: %q is no currency", final.ID, final.Currency)
	}
	var all []Correction
	for _, l := range final.Lines {
		use, known := now[l.Counter]
		if l.Kind != sales.LineUsage || l.Counter == "" || !known || use.Consumed < l.Consumed || use.Refunded < l.Refunded {
			continue
		}
		units, minor, err := invoiced(final, later, l.Metric)
		if err != nil {
			return nil, err
		}
		if units == use.Net() {
			continue
		}
		price, err := priceOf(plans, l)
		if err != nil {
			return nil, fmt.Errorf("invoice %s: %w", final.ID, err)
		}
		parts, err := Price(price, digits, use.Net())
		if err != nil {
			return nil, fmt.Errorf("invoice %s: %w", final.ID, err)
		}
		whole, err := Sum(parts)
		if err != nil {
			return nil, fmt.Errorf("invoice %s: %w", final.ID, err)
		}
		all = append(all, Correction{
			Invoice: final.ID, Number: final.Number, Metric: l.Metric, Units: use.Net() - units, Minor: whole - minor,
		})
	}
	return all, nil
}

// invoiced is what was invoiced of a metric so far, corrections included.
func invoiced(final sales.Invoice, later []sales.Invoice, metric string) (units, minor int64, err error) {
	take := func(l sales.InvoiceLine, currency string) {
		n, wrong := Minor(l.Amount, currency)
		if wrong != nil && err == nil {
			err = wrong
		}
		units, minor = units+l.Quantity, minor+n
	}
	for _, l := range final.Lines {
		if l.Kind == sales.LineUsage && l.Metric == metric {
			take(l, final.Currency)
		}
	}
	for _, i := range later {
		for _, l := range i.Lines {
			if l.Kind == sales.LineCorrection && l.Corrects == final.ID && l.Metric == metric {
				take(l, i.Currency)
			}
		}
	}
	return units, minor, err
}

func priceOf(plans map[plan.Version]sales.Plan, l sales.InvoiceLine) (sales.Price, error) {
	p, ok := plans[plan.Version{Plan: l.Plan, Number: l.PlanVersion}]
	if !ok {
		return sales.Price{}, fmt.Errorf("no version %d of plan %s", l.PlanVersion, l.Plan)
	}
	i := slices.IndexFunc(p.Prices, func(q sales.Price) bool { return q.Metric == l.Metric })
	if i < 0 {
		return sales.Price{}, fmt.Errorf("version %d of plan %s has no price of %s", l.PlanVersion, l.Plan, l.Metric)
	}
	return p.Prices[i], nil
}
