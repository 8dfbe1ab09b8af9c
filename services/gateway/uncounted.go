package gateway

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/settle"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// debts keeps what could not be charged, corrected or given back until it can
// be: *settle.Settler. It copies its arguments, never blocks on I/O but that of
// the store in Decide, and is safe for concurrent use.
type debts interface {
	Append(at time.Time, counters []limit.Counter)
	// Decide charges what may have to be given back: at the places of back, a bit
	// each. Of a decision that passes the hold is to be ended.
	Decide(ctx context.Context, counters []limit.Counter, back uint64) (limit.Decision, settle.Hold, error)
	Keep(h settle.Hold)
	GiveBack(h settle.Hold, at time.Time, counters []limit.Counter)
}

// shares judges by this gateway's share of each limit: *share.Limiter.
type shares interface {
	Observe(c *limit.Counter, st *limit.State)
	// Decide reports false where a share is unknown.
	Decide(counters []limit.Counter) (limit.Decision, bool)
	// GiveBack is of a decision that passed.
	GiveBack(counters []limit.Counter, d *limit.Decision)
}

// loss is why a counter could not be asked, as it is told.
type loss struct {
	reason   string // of the event
	degraded string // Sluice-Degraded, where the request passes all the same
	detail   string // of the 503
}

var (
	lossOfStore = &loss{
		reason: reasonStoreUnavailable, degraded: "store", detail: "The counters cannot be reached; a policy forbids to go on without them.",
	}
	lossOfCounter = &loss{
		reason: reasonCounterBroken, degraded: "counter", detail: "A counter holds something else; a policy forbids to go on without it.",
	}
)

// lossOfRule is of a rule that this build cannot read (a newer control plane's,
// say): it has no counter here.
var lossOfRule = &loss{
	reason: reasonRuleUnreadable, degraded: "rule", detail: "A policy cannot be read by this gateway, and forbids to go on without it.",
}

// setAsideUnreadable lets rules that could not be read say what their loss
// means, and takes them away. What they let pass is not owed: nobody knows to
// what counter.
func (g *gate) setAsideUnreadable(x *exchange) {
	unreadable := func(m rule.Match) bool { return m.Rule.Unreadable != "" }
	if !slices.ContainsFunc(x.matches, unreadable) {
		return
	}
	lost := slices.DeleteFunc(slices.Clone(x.matches), func(m rule.Match) bool { return !unreadable(m) })
	if g.fallBack(x, lost, lossOfRule); x.verdict.status == 0 {
		x.matches = slices.DeleteFunc(x.matches, unreadable)
	}
}

// fallBack applies the strictest onStoreLoss of the rules whose counters cannot
// be asked: closed before local, and local before open. A quota of 0 denies
// also then: 403 goes before 503. Shadow rules have no part in it.
func (g *gate) fallBack(x *exchange, lost []rule.Match, why *loss) {
	lost = slices.DeleteFunc(slices.Clone(lost), func(m rule.Match) bool { return m.Rule.Shadow })
	closed := func(m *rule.Match) bool {
		return m.Rule.OnStoreLoss == rules.StoreLossClosed &&
			among(lost, m.Rule)
	}
	switch {
	case len(lost) == 0:
	case x.denyBy(grantsNothing, http.StatusForbidden, reasonNotEntitled, outcomeDeny):
	case x.denyBy(closed, http.StatusServiceUnavailable, why.reason, outcomeError):
		x.verdict.loss = why
		g.metrics.fallback[policyClosed].Inc()
	case g.share(x, lost, why):
	default:
		g.metrics.fallback[policyOpen].Inc()
		x.verdict.reason, x.verdict.decisive, x.verdict.degraded, x.verdict.loss = why.reason, lost[0].Rule, true, why
	}
}

// local are the rules of those that go by this gateway's share, and their
// counters. Of a limit that could not be read no share can be had.
func (g *gate) local(x *exchange, of []rule.Match) (local []rule.Match, counters []limit.Counter) {
	for i := range of {
		if m := &of[i]; m.Rule.OnStoreLoss == rules.StoreLossLocal && m.Rule.Unreadable == "" {
			local, counters = append(local, *m), append(counters, g.counter(m, x.cost))
		}
	}
	return local, counters
}

// share judges the rules that are local by this gateway's share of their limits;
// false where none is. Where a share is unknown they deny as closed ones do.
func (g *gate) share(x *exchange, lost []rule.Match, why *loss) bool {
	local, counters := g.local(x, lost)
	if len(local) == 0 {
		return false
	}
	d, known := g.shares.Decide(counters)
	if !known {
		x.denyBy(func(m *rule.Match) bool { return among(local, m.Rule) }, http.StatusServiceUnavailable, why.reason, outcomeError)
		x.verdict.loss = why
		g.metrics.fallback[policyClosed].Inc()
		return true
	}
	if d.Allowed {
		x.taken = append(x.taken, taken{local, counters, d})
	}
	g.metrics.fallback[policyLocal].Inc()
	g.judgeByShare(x, local, counters, d, why)
	return true
}

func among(matches []rule.Match, r *rule.Compiled) bool {
	return slices.ContainsFunc(matches, func(m rule.Match) bool { return m.Rule == r })
}

// taken is what a request has had of this gateway's shares.
type taken struct {
	rules    []rule.Match
	counters []limit.Counter
	decision limit.Decision
}

// giveBack gives back what a request has had of the shares and does not pass by
// them, so that its decision has charged all or nothing.
func (g *gate) giveBack(x *exchange) {
	for i := range x.taken {
		t := &x.taken[i]
		g.shares.GiveBack(t.counters, &t.decision)
		for k := range x.judged {
			if j := &x.judged[k]; j.shared && !j.state.Unlimited && among(t.rules, j.rule) {
				j.state.Remaining += j.cost
			}
		}
	}
	x.taken = x.taken[:0]
}

// judgeByShare turns what the shares say into the verdict.
func (g *gate) judgeByShare(x *exchange, local []rule.Match, counters []limit.Counter, d limit.Decision, why *loss) {
	x.judge(local, counters, d)
	for i := range x.judged {
		j := &x.judged[i]
		j.shared = j.shared || among(local, j.rule)
	}
	x.verdict.degraded, x.verdict.loss = true, why
	if d.Allowed {
		x.verdict.reason = why.reason
	}
}

// observe remembers what was left of the counters whose rules are local.
func (g *gate) observe(matches []rule.Match, counters []limit.Counter, d *limit.Decision) {
	for i := range matches {
		if matches[i].Rule.OnStoreLoss == rules.StoreLossLocal {
			g.shares.Observe(&counters[i], &d.States[i])
		}
	}
}

// owe notes what a request that passes uncounted is still to be charged. That
// is done before it is forwarded: whatever dies from then on, it is charged. But
// rules with refundOn are owed nothing before the call has ended well (conclude).
func (g *gate) owe(x *exchange) {
	if x.verdict.decision != usage.DecisionDeny {
		g.oweUnits(x, x.uncounted, x.cost, func(m *rule.Match) bool { return m.Rule.RefundOn == nil })
	}
}

// oweUnits notes units of those rules that let the request pass uncounted and
// owe them; below 0 they are given back.
func (g *gate) oweUnits(x *exchange, uncounted []rule.Match, units int64, owes func(*rule.Match) bool) {
	counters := make([]limit.Counter, 0, len(uncounted))
	for i := range uncounted {
		if c := g.counter(&uncounted[i], units); owes(&uncounted[i]) && c.Cost != 0 && !c.Apart() {
			counters = append(counters, c)
		}
	}
	if len(counters) > 0 {
		g.debts.Append(x.start, counters)
		g.inJournal(x, uncounted)
	}
}

// inJournal says that the journal has what the request passed uncounted by.
func (g *gate) inJournal(x *exchange, uncounted []rule.Match) {
	if x.outage {
		g.unsettled.passed(uncounted)
	}
}

// addOwed tells of the quotas that passed uncounted.
func (g *gate) addOwed(x *exchange) {
	for i := range x.uncounted {
		m := &x.uncounted[i]
		if c := g.counter(m, x.costOf(m.Rule)); c.Cost != 0 && !c.Apart() && c.Algorithm.Quota() {
			x.charges = append(x.charges, pendingCharge(m.Rule.Metric, &c, x.start))
		}
	}
}

// pendingCharge says that units were used and will be charged; nobody knows the
// counter's totals.
func pendingCharge(metric string, c *limit.Counter, at time.Time) usage.Charge {
	charge := usage.Charge{Counter: c.Key, Metric: metric, Amount: c.Cost, Pending: true}
	if c.Renews() {
		charge.Counter += ":" + c.Calendar.At(at).Name()
	}
	if !c.Unlimited {
		n := c.Capacity()
		charge.Limit = &n
	}
	return charge
}
