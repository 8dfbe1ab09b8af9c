package gateway

import (
	"slices"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// judgeShadows reports what shadow rules would have done to a request that
// passes: the event says SHADOW and names the rule. What enforced rules said
// goes first, and the client's answer stays as it is.
func (x *exchange) judgeShadows() {
	slices.SortStableFunc(x.shadows, tighter)
	i := slices.IndexFunc(x.shadows, func(j judgement) bool { return !j.state.Allowed && !j.state.Broken })
	if i < 0 || x.verdict.decision != usage.DecisionAllow || x.verdict.degraded {
		return
	}
	first := &x.shadows[i]
	x.verdict.decision, x.verdict.outcome = usage.DecisionShadow, outcomeShadow
	x.verdict.reason, x.verdict.decisive = reasonQuotaExceeded, first.rule
	if !first.entitled() {
		x.verdict.reason = reasonNotEntitled
	}
}
