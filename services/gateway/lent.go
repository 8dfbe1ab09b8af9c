package gateway

import (
	"net/http"
	"slices"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
)

// lent is what a request has had of this gateway's shares.
type lent struct {
	rules    []rule.Match
	counters []limit.Counter
	decision limit.Decision
	// owed: the store has yet to hear of it; else it is asked beside the shares.
	owed bool
}

// hold charges the shares of those rules that need theirs beside the store
// (owing.holds), before it is asked. Where it reports false they do not allow the
// request, which has its verdict, and the store is not to be asked.
func (g *gate) hold(x *exchange, matches []rule.Match) bool {
	var held []rule.Match
	for i := range matches {
		if g.owing.holds(matches[i].Rule) {
			held = append(held, matches[i])
		}
	}
	local, counters := g.local(x, held)
	if len(local) == 0 {
		return true
	}
	d := g.shares.Decide(counters)
	switch {
	case d.Allowed:
		x.lent = append(x.lent, lent{rules: local, counters: counters, decision: d})
		return true
	case g.owing.isAway():
		// It would not be asked anyway: all rules say what that means.
		g.storeLost(x, matches, limit.ErrUnavailable)
	case x.denyBy(grantsNothing, http.StatusForbidden, reasonNotEntitled, outcomeDeny):
	case g.denyBlind(x, local, lossOfStore):
		g.metrics.fallback[policyClosed].Inc()
	default:
		g.metrics.fallback[policyLocal].Inc()
		g.judgeByShare(x, local, counters, d, lossOfStore)
	}
	return false
}

// letGo gives back what hold has charged: the store did not answer, so that the
// rules say anew what holds.
func (g *gate) letGo(x *exchange) {
	g.giveBack(x, func(l *lent) bool { return !l.owed })
}

// giveBack gives the shares back what a request has had of them that does not
// pass by them, so that its decision has charged all or nothing.
func (g *gate) giveBack(x *exchange, those func(*lent) bool) {
	x.lent = slices.DeleteFunc(x.lent, func(l lent) bool {
		if !those(&l) {
			return false
		}
		g.shares.GiveBack(l.counters, &l.decision)
		for i := range x.judged {
			j := &x.judged[i]
			if j.shared && !j.state.Unlimited && slices.ContainsFunc(l.rules, func(m rule.Match) bool { return m.Rule == j.rule }) {
				j.state.Remaining += j.cost
			}
		}
		if l.owed {
			g.owing.repay(l.rules)
		}
		return true
	})
}

// repay is said when the journal has what the request has had of the shares: of
// rules with refundOn when its call has ended.
func (g *gate) repay(x *exchange, ended bool) {
	x.lent = slices.DeleteFunc(x.lent, func(l lent) bool {
		if !ended && l.owed && slices.ContainsFunc(l.rules, func(m rule.Match) bool { return m.Rule.RefundOn != nil }) {
			return false
		}
		if l.owed {
			g.owing.repay(l.rules)
		}
		return true
	})
}
