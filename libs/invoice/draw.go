package invoice

import (
	"fmt"

	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// Use is what was used of a metric in a period: its counter's totals.
type Use struct {
	// Counter names the counter, period included.
	Counter            string
	Consumed, Refunded int64
}

// Net is what is invoiced.
func (u Use) Net() int64 { return max(0, u.Consumed-u.Refunded) }

// Correction is what an invoice that is final is found to be off by.
type Correction struct {
	// Invoice and Number are of the final one.
	Invoice, Number string
	Metric          string
	// Units and Minor are to be added, or where below 0 taken off.
	Units, Minor int64
}

// Input is what an invoice is worked out from.
type Input struct {
	Customer sales.Customer
	Currency string
	Period   period.Bounds
	// Held are what the customer's subscriptions had, all of that currency, in a
	// fixed order.
	Held []Held
	// Used is by metric, of what renews; Topped is by metric what was topped up
	// within the period.
	Used   map[string]Use
	Topped map[string]int64
	// Corrections are of other invoices, in a fixed order.
	Corrections []Correction
}

// Draw works out an invoice's lines and total. ID, number and state are the
// caller's.
func Draw(in Input) (sales.Invoice, error) {
	digits, ok := plan.MinorDigits(in.Currency)
	if !ok {
		return sales.Invoice{}, fmt.Errorf("invoice of %s: %q is no currency", in.Customer.ID, in.Currency)
	}
	d := drawing{in: in, digits: digits}
	for _, h := range in.Held {
		d.fee(h)
		if h.FeeOnly {
			continue
		}
		for _, p := range h.Plan.Prices {
			if prepaid(h.Plan, p.Metric) {
				d.topups(h.Plan, p)
			} else {
				d.usage(h.Plan, p)
			}
		}
	}
	for _, c := range in.Corrections {
		d.line(sales.InvoiceLine{
			Kind: sales.LineCorrection, Metric: c.Metric, Quantity: c.Units, Corrects: c.Invoice,
			Text: fmt.Sprintf("%s: correction of %s, known later", c.Metric, c.Number),
		}, c.Minor)
	}
	out := sales.Invoice{
		Customer: in.Customer.ID, Payer: in.Customer, Currency: in.Currency,
		Start: in.Period.Start, End: in.Period.End, Lines: d.lines,
	}
	if d.err == nil {
		out.Total, d.err = Format(d.total, in.Currency)
	}
	if d.err != nil {
		return sales.Invoice{}, fmt.Errorf("invoice of %s: %w", in.Customer.ID, d.err)
	}
	return out, nil
}

// prepaid reports a metric that the plan's rules count in a wallet.
func prepaid(p sales.Plan, metric string) bool {
	for _, t := range p.Rules {
		if t.Metric == metric && t.Limit != nil && t.Limit.Kind == rules.QuotaPrepaid {
			return true
		}
	}
	return false
}

// drawing collects lines until one cannot be worked out.
type drawing struct {
	in     Input
	digits int
	lines  []sales.InvoiceLine
	total  int64
	err    error
}

func (d *drawing) line(l sales.InvoiceLine, minor int64) {
	if d.err != nil {
		return
	}
	if l.Amount, d.err = Format(minor, d.in.Currency); d.err != nil {
		return
	}
	d.total, d.err = add(d.total, minor)
	d.lines = append(d.lines, l)
}

// fee is of the whole period, or of the part of its days that the plan was held.
func (d *drawing) fee(h Held) {
	nanos, ok := plan.Nanos(h.Plan.BaseFee)
	if !ok {
		d.fail(fmt.Errorf("%q is no fee", h.Plan.BaseFee))
		return
	}
	minor, err := amountOf(1, nanos, d.digits)
	if err != nil {
		d.fail(err)
		return
	}
	if minor == 0 {
		return
	}
	calendar := d.in.Period.Calendar
	all := calendar.Day(d.in.Period.End) - calendar.Day(d.in.Period.Start)
	whole, err := Format(minor, d.in.Currency)
	if err != nil {
		d.fail(err)
		return
	}
	text := name(h.Plan) + ": fee"
	if h.Days < all {
		text = fmt.Sprintf("%s, %d of %d days", text, h.Days, all)
		minor = share(minor, h.Days, all)
	}
	d.line(sales.InvoiceLine{
		Kind: sales.LineFee, Plan: h.Plan.ID, PlanVersion: h.Plan.Version, Quantity: h.Days, PeriodFee: whole, Text: text,
	}, minor)
}

func (d *drawing) usage(p sales.Plan, price sales.Price) {
	use := d.in.Used[price.Metric]
	d.parts(sales.LineUsage, p, price, use.Net(), use)
}

func (d *drawing) topups(p sales.Plan, price sales.Price) {
	d.parts(sales.LineTopup, p, price, d.in.Topped[price.Metric], Use{})
}

func (d *drawing) parts(kind string, p sales.Plan, price sales.Price, quantity int64, use Use) {
	parts, err := Price(price, d.digits, quantity)
	if err != nil {
		d.fail(err)
		return
	}
	if len(parts) == 0 {
		parts = []Part{{UnitPrice: "0"}} // used nothing: said, and free
	}
	for i, part := range parts {
		l := sales.InvoiceLine{
			Kind: kind, Plan: p.ID, PlanVersion: p.Version, Metric: price.Metric,
			Quantity: part.Quantity, UnitPrice: part.UnitPrice, Text: text(kind, price.Metric, part),
		}
		if i == 0 {
			l.Counter, l.Consumed, l.Refunded = use.Counter, use.Consumed, use.Refunded
		}
		d.line(l, part.Minor)
	}
}

func text(kind, metric string, p Part) string {
	switch {
	case p.Fee:
		return metric + ": fee of the tier"
	case p.Included:
		return metric + ": included"
	case kind == sales.LineTopup:
		return metric + ": topped up"
	}
	return metric + ": used"
}

func (d *drawing) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func name(p sales.Plan) string {
	if p.Name != "" {
		return p.Name
	}
	return p.ID
}
