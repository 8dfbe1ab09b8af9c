package usagestore

import (
	"fmt"
	"time"
)

// MaxDays is the longest span of a DaysQuery: a year, its leap day, and the days
// that a zone cuts in two.
const MaxDays = 368

// MaxCounters is how many counters a day of a DaysQuery tells apart.
const MaxCounters = 1000

// TotalsQuery selects quota charges.
type TotalsQuery struct {
	// TenantID is whose events are summed; empty is everyone's.
	TenantID string
	// From is inclusive, To is not; zero values select everything.
	From, To time.Time
	// Limit is how many counters a page has, as Query.Limit.
	Limit int
	// After is TotalsPage.Next of the page before.
	After string
}

// PageLimit is the number of counters of a page.
func (q TotalsQuery) PageLimit() int { return Query{Limit: q.Limit}.PageLimit() }

// CounterSum is what events say of one quota counter.
type CounterSum struct {
	Counter string
	// Amount is the sum of the charges' amounts, in units; refunds are negative.
	Amount int64
	// Events is how many charges there were.
	Events int64
}

// TotalsPage is one page of sums.
type TotalsPage struct {
	Sums []CounterSum
	// Next is the last counter of the page, empty on the last one.
	Next string
}

// DaysQuery selects the quota charges of a tenant and metric, by the day.
type DaysQuery struct {
	// TenantID and Metric are exact, and required.
	TenantID, Metric string
	// From is inclusive, To is not; at most MaxDays lie between.
	From, To time.Time
	// Zone is whose days they are; nil is UTC.
	Zone *time.Location
}

// DaySum is what one counter was charged on one day.
type DaySum struct {
	// Day is YYYY-MM-DD.
	Day     string
	Counter string
	// Amount is in units, below 0 where more was refunded than used.
	Amount int64
}

// Check returns ErrBadQuery for a query that cannot be answered, and fills in
// its zone.
func (q *DaysQuery) Check() error {
	if q.Zone == nil {
		q.Zone = time.UTC
	}
	switch {
	case q.TenantID == "" || q.Metric == "":
		return fmt.Errorf("%w: sums by the day are of one tenant and metric", ErrBadQuery)
	case !q.From.Before(q.To):
		return fmt.Errorf("%w: from is not before to", ErrBadQuery)
	case q.To.Sub(q.From) > MaxDays*24*time.Hour:
		return fmt.Errorf("%w: more than %d days between from and to", ErrBadQuery, MaxDays)
	}
	return nil
}
