package gateway

import (
	"slices"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// setAsideMissing takes away shadow rules that would deny for want of an
// identity: they have no counter to ask.
func (x *exchange) setAsideMissing() {
	x.matches = slices.DeleteFunc(x.matches, func(m rule.Match) bool {
		if !m.MissingDeny {
			return false
		}
		if x.shadowMissing == nil {
			x.shadowMissing = m.Rule
		}
		return true
	})
}

// judgeShadows reports what shadow rules would have done to a request that
// passes: the event says SHADOW and names the rule. What enforced rules said
// goes first, and the client's answer stays as it is.
func (x *exchange) judgeShadows() {
	slices.SortStableFunc(x.shadows, tighter)
	if x.verdict.decision != usage.DecisionAllow || x.verdict.degraded {
		return
	}
	if x.shadowMissing != nil {
		x.reportShadow(x.shadowMissing, reasonIdentityMissing)
		return
	}
	i := slices.IndexFunc(x.shadows, func(j judgement) bool { return !j.state.Allowed && !j.state.Broken })
	switch {
	case i < 0:
	case x.shadows[i].entitled():
		x.reportShadow(x.shadows[i].rule, reasonQuotaExceeded)
	default:
		x.reportShadow(x.shadows[i].rule, reasonNotEntitled)
	}
}

func (x *exchange) reportShadow(r *rule.Compiled, reason string) {
	x.verdict.decision, x.verdict.outcome = usage.DecisionShadow, outcomeShadow
	x.verdict.reason, x.verdict.decisive = reason, r
}
