package charge

import (
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// Events lists the quota counters that were charged, with their totals from the
// same atomic step. A denied request was charged nothing by enforced rules; each
// shadow rule charges what it would let pass itself.
func (q *Charges) Events() []usage.Charge {
	all := q.events
	if q.Verdict.Decision != usage.DecisionDeny {
		for i := range q.Judged {
			all = q.Judged[i].report(all)
		}
		for i := range q.uncounted {
			all = q.reportUncounted(all, &q.uncounted[i])
		}
	}
	for i := range q.shadows {
		if j := &q.shadows[i]; j.State.Allowed {
			all = j.report(all)
		}
	}
	q.events = all[:len(q.events)] // with the capacity
	return all
}

func (j *Judgement) report(all []usage.Charge) []usage.Charge {
	if j.Shared || !j.Rule.Algorithm.Quota() || j.Cost == 0 && j.corrected == 0 {
		return all
	}
	c := usage.Charge{
		Counter: j.State.Key, Metric: j.Rule.Metric, Amount: j.Cost,
		Consumed: j.State.Consumed, Refunded: j.State.Refunded, Forfeited: j.State.Forfeited,
		Thresholds: j.Rule.Thresholds,
	}
	if j.carries {
		c.Carried = &j.State.Carried
	}
	if !j.State.Unlimited {
		c.Limit = &j.State.Limit
	}
	return append(all, c)
}

// reportUncounted tells of a quota that passed uncounted: of what was given back
// at the cost it was forwarded with.
func (q *Charges) reportUncounted(all []usage.Charge, u *uncounted) []usage.Charge {
	cost := q.Cost
	if u.refunded {
		cost = q.begunAt
	}
	if n := q.by.Counter(&u.match, cost); n.Cost != 0 && !n.Apart() && n.Algorithm.Quota() {
		all = append(all, Pending(u.match.Rule.Metric, &n, q.start))
	}
	return all
}

// reportLater tells of units of a quota that will be given back, or are a
// correction in the journal.
func (q *Charges) reportLater(metric string, n *limit.Counter, refund bool) {
	if n.Algorithm.Quota() {
		e := Pending(metric, n, n.At)
		e.Refund = refund
		q.events = append(q.events, e)
	}
}

// Pending says that units were used at that time and will be charged; nobody
// knows the counter's totals.
func Pending(metric string, n *limit.Counter, at time.Time) usage.Charge {
	e := usage.Charge{Counter: n.Key, Metric: metric, Amount: n.Cost, Pending: true}
	if n.Renews() {
		e.Counter += ":" + n.Calendar.At(at).Name()
	}
	if !n.Unlimited {
		capacity := n.Capacity()
		e.Limit = &capacity
	}
	return e
}
