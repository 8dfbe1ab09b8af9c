package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// Reasons of events; an open vocabulary.
const (
	reasonQuotaExceeded    = "quota-exceeded"
	reasonNotEntitled      = "not-entitled"
	reasonIdentityMissing  = "identity-missing"
	reasonStoreUnavailable = "store-unavailable"
	reasonRestoring        = "restoring"
	reasonCounterBroken    = "counter-broken"
	reasonRuleUnreadable   = "rule-unreadable"
)

// verdict is what was decided, and why.
type verdict struct {
	decision string // usage.DecisionAllow, DecisionDeny or DecisionShadow
	outcome  outcome
	// status of the gate's own answer; 0 forwards the request.
	status int
	reason string
	// decisive is the rule that denied, or else the tightest; nil without one.
	decisive *rule.Compiled
	// violated are the names of the policies that denied, the decisive first.
	violated []string
	// degraded: a counter could not be asked and its rule lets pass.
	degraded bool
	// loss is why it could not; nil where all counters were asked.
	loss *loss
}

// judgement is what one counter said.
type judgement struct {
	rule  *rule.Compiled
	state limit.State
	// cost is what was charged, corrections included.
	cost int64
	// corrected is the part of cost that the service's answer added.
	corrected int64
	// carries: what the period has from the last one is part of its totals.
	carries bool
	// shared: by this gateway's share, and nothing is charged yet.
	shared bool
}

// entitled reports whether the counter's policy grants anything at all. An
// empty wallet is entitled to what it is topped up with.
func (j *judgement) entitled() bool {
	return j.state.Unlimited || j.state.Limit > 0 || !j.rule.Algorithm.Quota() || j.rule.Prepaid
}

// decide asks all counters of the matched rules in one call and comes to a
// verdict. From here on the request has an id and ends in exactly one event.
func (g *gate) decide(x *exchange) bool {
	x.decided, x.id = true, newDecisionID(x.start)
	x.verdict = verdict{decision: usage.DecisionAllow, outcome: outcomeAllow}
	if len(x.matches) > 0 && !x.denyBy(missesIdentity, http.StatusForbidden, reasonIdentityMissing, outcomeDeny) {
		x.setAsideMissing()
		if g.setAsideUnreadable(x); x.verdict.status == 0 {
			g.count(x)
			g.owe(x)
		}
	}
	x.judgeShadows()
	x.ownTime = g.now().Sub(x.start)
	return true
}

// denyBy denies when one of the matched rules is against the request for a
// reason that no counter is needed for. Shadow rules deny nothing.
func (x *exchange) denyBy(against func(*rule.Match) bool, status int, reason string, o outcome) bool {
	v := verdict{decision: usage.DecisionDeny, outcome: o, status: status, reason: reason}
	for i := range x.matches {
		if m := &x.matches[i]; !m.Rule.Shadow && against(m) {
			if v.decisive == nil {
				v.decisive = m.Rule
			}
			v.violated = append(v.violated, policyName(m.Rule.ID))
		}
	}
	if v.decisive == nil {
		return false
	}
	x.verdict = v
	return true
}

func missesIdentity(m *rule.Match) bool { return m.MissingDeny }

// grantsNothing: a quota of 0, which no counter can change.
func grantsNothing(m *rule.Match) bool { return m.GrantsNothing() }

// count charges the counters, or falls back to the rules' onStoreLoss. What
// shares were charged for a request that does not pass is given back.
func (g *gate) count(x *exchange) {
	for i := range x.matches {
		x.counters = append(x.counters, g.counter(&x.matches[i], x.cost))
	}
	if matches, counters := g.goByShares(x); x.verdict.status == 0 && len(matches) > 0 {
		g.askStore(x, matches, counters)
	}
	if x.verdict.status != 0 {
		g.giveBack(x)
	}
}

// goByShares judges those rules by their shares that go by them until the journal
// is settled, and returns the others.
func (g *gate) goByShares(x *exchange) (matches []rule.Match, counters []limit.Counter) {
	holds := func(m rule.Match) bool { return g.unsettled.holds(m.Rule) }
	if !slices.ContainsFunc(x.matches, holds) {
		return x.matches, x.counters
	}
	var held []rule.Match
	for i, m := range x.matches {
		if holds(m) {
			held = append(held, m)
		} else {
			matches, counters = append(matches, m), append(counters, x.counters[i])
		}
	}
	if g.fallBack(x, held, lossOfStore); x.verdict.status == 0 {
		x.uncounted = append(x.uncounted, held...)
	}
	return matches, counters
}

// askStore charges counters, or applies the onStoreLoss of those rules whose
// counters the store cannot charge.
func (g *gate) askStore(x *exchange, matches []rule.Match, counters []limit.Counter) {
	d, err := g.charge(x, matches, counters)
	switch {
	case err == nil:
		g.observe(matches, counters, &d)
		x.judge(matches, counters, d)
	case errors.Is(err, limit.ErrCounterBroken):
		g.countWithoutBroken(x, matches, counters)
	case errors.Is(err, limit.ErrRestoring):
		g.countWithoutQuotas(x, matches, counters, err)
	default:
		g.storeLost(x, matches, err)
	}
}

// ask charges the counters. A client that goes away does not cut the call
// short, or a charge would be made that no event tells of; the store bounds it.
func (g *gate) ask(counters []limit.Counter) (limit.Decision, error) {
	return g.store.Decide(context.Background(), counters)
}

// countWithoutBroken looks at each counter alone (cost 0 takes nothing), lets
// the rules of the broken ones say what their loss means, and charges the rest.
// This is rare and slow; a key of the wrong type means that somebody else
// writes into the counters.
//
// What a broken counter lets pass is not owed: the journal is for a store that
// comes back by itself, and would find the key as broken as it is now. The
// event, the log and a metric tell of it; deleting the key mends the counter.
func (g *gate) countWithoutBroken(x *exchange, matches []rule.Match, counters []limit.Counter) {
	var (
		whole, lost []rule.Match
		rest        []limit.Counter
	)
	for i := range counters {
		look := counters[i]
		look.Cost = 0
		_, err := g.ask([]limit.Counter{look})
		switch {
		case err == nil:
			whole, rest = append(whole, matches[i]), append(rest, counters[i])
		case errors.Is(err, limit.ErrCounterBroken):
			g.metrics.broken.Inc()
			g.complain.Say(slog.LevelError, "counter is broken; its rule's onStoreLoss holds", "rule", matches[i].Rule.ID, "error", err)
			lost = append(lost, matches[i])
		default:
			g.storeLost(x, matches, err)
			return
		}
	}
	if g.fallBack(x, lost, lossOfCounter); x.verdict.status != 0 || len(rest) == 0 {
		return
	}
	g.askAbout(x, whole, rest)
}

// askAbout charges those counters for which no rule has said yet what their
// loss means.
func (g *gate) askAbout(x *exchange, matches []rule.Match, counters []limit.Counter) {
	d, err := g.charge(x, matches, counters)
	if err != nil {
		g.storeLost(x, matches, err)
		return
	}
	g.observe(matches, counters, &d)
	x.judge(matches, counters, d)
}

// storeLost is the verdict when the store could not be asked about some rules.
func (g *gate) storeLost(x *exchange, lost []rule.Match, err error) {
	level := slog.LevelWarn
	if !errors.Is(err, limit.ErrUnavailable) {
		level = slog.LevelError // not an outage but a bug or a foreign key
	}
	g.complain.Say(level, "counters could not be charged; the rules' onStoreLoss holds", "error", err)
	x.outage = true
	if g.fallBack(x, lost, lossOfStore); x.verdict.status == 0 {
		x.uncounted = append(x.uncounted, lost...)
	}
}

// judge turns the counters' states into the verdict: 403 goes before 429, the
// longest wait before shorter ones.
func (x *exchange) judge(matches []rule.Match, counters []limit.Counter, d limit.Decision) {
	x.judgedAt = d.Now
	for i := range d.States {
		j := judgement{rule: matches[i].Rule, state: d.States[i], cost: counters[i].Cost, carries: counters[i].Rolls()}
		if j.state.Shadow {
			x.shadows = append(x.shadows, j)
		} else {
			x.judged = append(x.judged, j)
		}
	}
	if len(x.judged) > 0 {
		x.judgeEnforced(d.Allowed)
	}
}

func (x *exchange) judgeEnforced(allowed bool) {
	slices.SortStableFunc(x.judged, tighter)
	first := &x.judged[0]
	if !x.verdict.degraded {
		x.verdict.decisive = first.rule
	}
	if allowed {
		return
	}
	x.verdict = verdict{
		decision: usage.DecisionDeny, outcome: outcomeDeny, status: http.StatusTooManyRequests,
		reason: reasonQuotaExceeded, decisive: first.rule, degraded: x.verdict.degraded, loss: x.verdict.loss,
	}
	if !first.entitled() {
		x.verdict.status, x.verdict.reason = http.StatusForbidden, reasonNotEntitled
	}
	for i := range x.judged {
		if j := &x.judged[i]; !j.state.Allowed {
			x.verdict.violated = append(x.verdict.violated, policyName(j.rule.ID))
		}
	}
}

// tighter orders judgements: those that deny first, among them 403 before 429
// and the longer wait first; then the fewest units left, then the later reset.
func tighter(a, b judgement) int {
	if a.state.Allowed != b.state.Allowed {
		return first(!a.state.Allowed)
	}
	if !a.state.Allowed {
		if a.entitled() != b.entitled() {
			return first(!a.entitled())
		}
		if a.state.Never != b.state.Never {
			return first(a.state.Never)
		}
		return -cmp.Compare(a.state.RetryAfter, b.state.RetryAfter)
	}
	if a.state.Unlimited != b.state.Unlimited {
		return first(!a.state.Unlimited)
	}
	return cmp.Or(cmp.Compare(a.state.Remaining, b.state.Remaining), -cmp.Compare(a.state.Reset, b.state.Reset))
}

// first is the result of a comparison that a wins when it is true.
func first(a bool) int {
	if a {
		return -1
	}
	return 1
}
