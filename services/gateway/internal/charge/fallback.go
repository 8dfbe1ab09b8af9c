package charge

import (
	"net/http"
	"slices"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// fallBack applies the strictest onStoreLoss of the rules whose counters cannot
// be asked: closed before local, and local before open. A quota of 0 denies
// also then: 403 goes before 503. Shadow rules have no part in it. It reports
// whether the request may still pass.
func (c *Charger) fallBack(q *Charges, lost []rule.Match, why *Loss) bool {
	lost = slices.DeleteFunc(slices.Clone(lost), func(m rule.Match) bool { return m.Rule.Shadow })
	var closed, local []rule.Match
	var counters []limit.Counter
	for i := range lost {
		switch m := &lost[i]; {
		case m.Rule.OnStoreLoss == rules.StoreLossClosed:
			closed = append(closed, *m)
		case byShare(m.Rule) && m.Rule.Unreadable == "":
			local, counters = append(local, *m), append(counters, c.Counter(m, q.Cost))
		}
	}
	switch {
	case len(lost) == 0:
	case q.DenyUnentitled():
	case c.denyLost(q, closed, why):
	case len(local) > 0:
		c.share(q, local, counters, why)
	default:
		c.Metrics.Fallback[Open].Inc()
		q.Verdict.Reason, q.Verdict.Decisive, q.Verdict.Degraded, q.Verdict.Loss = why.Reason, lost[0].Rule, true, why
	}
	return q.Verdict.Status == 0
}

func among(matches []rule.Match, r *rule.Compiled) bool {
	return slices.ContainsFunc(matches, func(m rule.Match) bool { return m.Rule == r })
}

// denyLost denies with 503 by those rules.
func (c *Charger) denyLost(q *Charges, those []rule.Match, why *Loss) bool {
	if !q.DenyBy(func(m *rule.Match) bool { return among(those, m.Rule) }, http.StatusServiceUnavailable, why.Reason, Error) {
		return false
	}
	q.Verdict.Loss = why
	c.Metrics.Fallback[Closed].Inc()
	return true
}

// share judges rules by this gateway's share of their limits. Where a share is
// unknown they deny as closed ones do.
func (c *Charger) share(q *Charges, local []rule.Match, counters []limit.Counter, why *Loss) {
	d, known := c.Shares.Decide(counters)
	if !known {
		c.denyLost(q, local, why)
		return
	}
	c.Metrics.Fallback[Local].Inc()
	if d.Allowed {
		q.taken = append(q.taken, taken{counters, d})
	}
	q.Judge(local, counters, d)
	for i := range q.Judged {
		if j := &q.Judged[i]; among(local, j.Rule) {
			j.Shared, j.taken = true, d.Allowed
		}
	}
	q.Verdict.Degraded, q.Verdict.Loss = true, why
	if d.Allowed {
		q.Verdict.Reason = why.Reason
	}
}

// giveBack gives back what a request that does not pass was charged of the shares.
func (c *Charger) giveBack(q *Charges) {
	for i := range q.taken {
		c.Shares.GiveBack(q.taken[i].counters, &q.taken[i].decision)
	}
	for i := range q.Judged {
		if j := &q.Judged[i]; j.taken && !j.State.Unlimited {
			j.State.Remaining += j.Cost
		}
	}
	q.taken = q.taken[:0]
}

// owe journals units of those rules that let the request pass uncounted and owe
// them; below 0 they are given back.
func (c *Charger) owe(q *Charges, units int64, owes func(*uncounted) bool) {
	var counters []limit.Counter
	for i := range q.uncounted {
		u := &q.uncounted[i]
		if n := c.Counter(&u.match, units); owes(u) && n.Cost != 0 && !n.Apart() {
			counters = append(counters, n)
		}
	}
	c.journal(q, counters)
}

// journal writes down what is to be charged when the store is back.
func (c *Charger) journal(q *Charges, counters []limit.Counter) {
	if len(counters) == 0 {
		return
	}
	c.Journal.Append(q.start, counters)
	for i := range q.uncounted {
		if q.outage {
			c.Unsettled.passed(q.uncounted[i].match.Rule)
		}
	}
}
