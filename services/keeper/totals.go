package keeper

import "time"

// totals are what is known of one counter: the maximum of each number, and the
// metric and limit of the newest charge.
type totals struct {
	metric                        string
	consumed, refunded, forfeited int64
	carried                       *int64 // nil without rollover
	limit                         *int64 // nil is unlimited
	chargedAt                     time.Time
	eventID                       string // orders charges of one millisecond
}

// add takes in what another charge or fold says. The result does not depend on
// the order of additions, nor on how often one is made.
func (t totals) add(o totals) totals {
	consumed, refunded, forfeited := max(t.consumed, o.consumed), max(t.refunded, o.refunded), max(t.forfeited, o.forfeited)
	carried := t.carried
	if carried == nil || o.carried != nil && *o.carried > *carried {
		carried = o.carried
	}
	if o.newerThan(t) {
		t = o
	}
	t.carried = carried
	t.consumed, t.refunded, t.forfeited = consumed, refunded, forfeited
	return t
}

func (t totals) newerThan(o totals) bool {
	if c := t.chargedAt.Compare(o.chargedAt); c != 0 {
		return c > 0
	}
	return t.eventID > o.eventID
}
