package charge

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
)

// AsBegun is the cost of a request whose service stated none.
const AsBegun = -1

// Finish ends the charges of a request when its call's end is known, once. Where
// refundOn of a rule names such a failure its charge is given back; else it
// stands, or is journaled from now on. What is left is corrected to the cost that
// the service states. It comes before the event and the client's answer, so that
// both have the corrected numbers, and denies nothing.
func (q *Charges) Finish(status int, how rule.Failure, cost int64) {
	if q.finished || q.Verdict.Status != 0 {
		return
	}
	q.finished, q.begunAt = true, q.Cost
	q.by.refund(q, status, how)
	if cost != AsBegun && cost != q.Cost {
		q.by.correct(q, cost)
	}
}

// refund gives back what rules charged whose refundOn names the call's failure.
func (c *Charger) refund(q *Charges, status int, how rule.Failure) {
	var back, owed []limit.Counter
	failed := false
	q.eachCharged(func(j *Judgement) {
		if j.Rule.RefundOn == nil || !j.Rule.RefundOn.Has(status, how) {
			return
		}
		if n := c.Counter(j.match, q.Cost); n.Cost > 0 {
			j.refunded, failed = true, true
			n.At, n.Cost = q.JudgedAt, -n.Cost
			back = append(back, n)
			q.reportLater(j.Rule.Metric, &n, true)
		}
	})
	for i := range q.uncounted {
		u := &q.uncounted[i]
		n := c.Counter(&u.match, q.Cost)
		if r := u.match.Rule; r.RefundOn == nil || n.Cost <= 0 || n.Apart() {
			continue
		} else if n.At = q.start; !r.RefundOn.Has(status, how) {
			owed = append(owed, n)
			continue
		}
		u.refunded, failed = true, true
		n.Cost = -n.Cost
		q.reportLater(u.match.Rule.Metric, &n, true)
	}
	c.journal(q, owed)
	if failed {
		c.Metrics.Refunds.Inc()
	}
	if len(back) == 0 {
		c.Journal.End(q.inFlight)
		return
	}
	c.Journal.GiveBack(q.inFlight, q.JudgedAt, back)
}

// correct charges or gives back the difference between the cost that the service
// states and what was charged when the request was let pass. Rules with a cost of
// their own are not concerned, nor those that gave back all they charged.
func (c *Charger) correct(q *Charges, cost int64) {
	difference := cost - q.Cost
	result := Charged
	if difference < 0 {
		result = Refunded
	}
	switch err := c.correctCharged(q, difference); {
	case errors.Is(err, limit.ErrUnavailable):
		result = Owed
	case err != nil:
		c.Metrics.Corrections[Lost].Inc()
		c.Complain.Say(slog.LevelError, "cost of a request could not be corrected", "units", difference, "error", err)
		return
	}
	// What passed uncounted is in the journal with its first cost.
	c.owe(q, difference, func(u *uncounted) bool { return costs(&u.match) && !u.refunded })
	q.Cost = cost
	c.Metrics.Corrections[result].Inc()
}

// costs reports whether the rule charges what the request costs, not the same
// whatever that is.
func costs(m *rule.Match) bool { return m.Cost(0) != m.Cost(1) }

// correctCharged corrects the counters that were charged at once. While they
// cannot be reached the difference is journaled: the store sees to it that a call
// it gave up charges nothing.
func (c *Charger) correctCharged(q *Charges, difference int64) error {
	var corrected []*Judgement
	var s set
	q.eachCharged(func(j *Judgement) {
		if !costs(j.match) || j.refunded {
			return
		}
		n := c.Counter(j.match, difference)
		n.Force, n.At = true, q.JudgedAt
		corrected, s.matches, s.counters = append(corrected, j), append(s.matches, *j.match), append(s.counters, n)
	})
	if len(corrected) == 0 {
		return nil
	}
	d, err := c.Store.Decide(context.Background(), s.counters)
	if errors.Is(err, limit.ErrUnavailable) {
		c.Journal.Append(q.JudgedAt, s.counters)
		for i := range s.counters {
			q.reportLater(s.matches[i].Rule.Metric, &s.counters[i], false)
		}
	}
	if err != nil {
		return err
	}
	for i, j := range corrected {
		j.correct(difference, &d.States[i])
	}
	q.JudgedAt = d.Now
	slices.SortStableFunc(q.Judged, tighter)
	return nil
}
