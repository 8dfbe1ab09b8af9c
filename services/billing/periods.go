package billing

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/invoice"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// due is an invoice to be worked out: a period and what was held in it.
type due struct {
	bounds   period.Bounds
	zone     string // whose midnights the bounds are
	currency string
	held     []invoice.Held
	// shares are the subscriptions on it.
	shares []sales.Subscription
	// corrects: the corrections of earlier invoices are on it.
	corrects bool
}

// isFor reports an invoice of the same period and currency.
func (d *due) isFor(i sales.Invoice) bool {
	return d.currency == i.Currency && d.bounds.Start.Equal(i.Start) && d.bounds.End.Equal(i.End)
}

// dues lists what is not on a final invoice yet, up to the periods that run at
// now; the oldest first. Subscriptions of one period and currency share one.
func (a *account) dues(now time.Time) ([]*due, error) {
	var all []*due
	for _, s := range a.subscriptions {
		for at := a.begins(s); !at.After(now) && (s.EndsAt == nil || at.Before(*s.EndsAt)); {
			version, ok := a.plans[plan.VersionOf(phaseAt(s, at))]
			if !ok {
				return nil, fmt.Errorf("subscription %s: a plan version of it is not there", s.ID)
			}
			b, err := plan.PeriodAt(version, a.customer, at)
			if err != nil {
				return nil, err
			}
			if through, ok := a.through[s.ID]; ok && through.After(b.Start) {
				b.Start = through // the calendar changed: the rest of what runs
			}
			held, err := invoice.HeldIn(s, a.plans, b)
			if err != nil {
				return nil, err
			}
			all = share(all, due{bounds: b, zone: plan.Zone(version, a.customer)}, s, held)
			at = b.End
		}
	}
	slices.SortStableFunc(all, byPeriod)
	return all, nil
}

func byPeriod(x, y *due) int {
	return cmp.Or(x.bounds.End.Compare(y.bounds.End), x.bounds.Start.Compare(y.bounds.Start), cmp.Compare(x.currency, y.currency))
}

// begins is where the first period lies that is not invoiced.
func (a *account) begins(s sales.Subscription) time.Time {
	if through, ok := a.through[s.ID]; ok {
		return through
	}
	return *s.StartedAt
}

// phaseAt is the phase that holds at an instant.
func phaseAt(s sales.Subscription, at time.Time) sales.Phase {
	now := s.Phases[0]
	for _, p := range s.Phases[1:] {
		if !p.From.After(at) {
			now = p
		}
	}
	return now
}

// share puts what a subscription held on the invoices of the period, one a
// currency: another version may have another one.
func share(all []*due, of due, s sales.Subscription, held []invoice.Held) []*due {
	for _, h := range held {
		i := slices.IndexFunc(all, func(d *due) bool {
			return d.isFor(sales.Invoice{Currency: h.Plan.Currency, Start: of.bounds.Start, End: of.bounds.End})
		})
		if i < 0 {
			i = len(all)
			all = append(all, &due{bounds: of.bounds, zone: of.zone, currency: h.Plan.Currency})
		}
		d := all[i]
		d.held = append(d.held, h)
		if !slices.ContainsFunc(d.shares, func(t sales.Subscription) bool { return t.ID == s.ID }) {
			d.shares = append(d.shares, s)
		}
	}
	return all
}
