package charge

import (
	"slices"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// setAsideMissing takes away shadow rules that would deny for want of an
// identity: they have no counter to ask.
func (q *Charges) setAsideMissing() {
	q.Matches = slices.DeleteFunc(q.Matches, func(m rule.Match) bool {
		if m.MissingDeny && q.shadowMissing == nil {
			q.shadowMissing = m.Rule
		}
		return m.MissingDeny
	})
}

// JudgeShadows reports what shadow rules would have done to a request that
// passes: the event says SHADOW and names the rule. What enforced rules said
// goes first, and the client's answer stays as it is.
func (q *Charges) JudgeShadows() {
	slices.SortStableFunc(q.shadows, tighter)
	if q.Verdict.Decision != usage.DecisionAllow || q.Verdict.Degraded {
		return
	}
	if q.shadowMissing != nil {
		q.reportShadow(q.shadowMissing, IdentityMissing)
		return
	}
	i := slices.IndexFunc(q.shadows, func(j Judgement) bool { return !j.State.Allowed && !j.State.Broken })
	switch {
	case i < 0:
	case q.shadows[i].entitled():
		q.reportShadow(q.shadows[i].Rule, QuotaExceeded)
	default:
		q.reportShadow(q.shadows[i].Rule, NotEntitled)
	}
}

func (q *Charges) reportShadow(r *rule.Compiled, reason string) {
	q.Verdict.Decision, q.Verdict.Outcome = usage.DecisionShadow, Shadow
	q.Verdict.Reason, q.Verdict.Decisive = reason, r
}
