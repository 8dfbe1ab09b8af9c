package rule

import (
	"slices"

	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Normalize returns r with its defaults filled in, and patterns in canonical
// spelling; r is not changed and shares no Limit, Thresholds or RefundOn with the result.
// It is idempotent, and a valid rule stays valid. Of an invalid rule it fills
// what it can.
func Normalize(r rules.Rule) rules.Rule {
	fill(&r.Mode, rules.ModeEnforce)
	fill(&r.OnMissing, rules.MissingSkip)
	if r.Limit != nil {
		l := *r.Limit
		normalizeLimit(&l)
		r.Limit = &l
	}
	// An unlimited rule never denies, so not when the store is away either.
	if r.Limit != nil && r.Limit.Algorithm == rules.AlgorithmQuota && !r.Unlimited {
		fill(&r.OnStoreLoss, rules.StoreLossClosed)
	}
	fill(&r.OnStoreLoss, rules.StoreLossOpen)
	r.Thresholds = sortedThresholds(r.Thresholds)
	r.RefundOn = slices.Sorted(slices.Values(r.RefundOn)) // nil where it is empty
	if p, err := route.Parse(r.Scope.Endpoint); err == nil {
		r.Scope.Endpoint = p.String()
	}
	return r
}

func normalizeLimit(l *rules.Limit) {
	switch l.Algorithm {
	case rules.AlgorithmGCRA, rules.AlgorithmTokenBucket:
		if l.Burst == nil && l.Limit != nil {
			burst := *l.Limit
			l.Burst = &burst
		}
	case rules.AlgorithmQuota:
		fill(&l.Kind, rules.QuotaRenewing)
		fill(&l.Overdraft, rules.OverdraftNone)
		if l.Kind == rules.QuotaPrepaid {
			return
		}
		fill(&l.Timezone, "UTC")
		switch {
		case l.Period == period.NameMonth && l.AnchorDay == 0:
			l.AnchorDay = 1
		case l.Period == period.NameWeek:
			fill(&l.WeekStart, "monday")
		}
	}
}

func fill(field *string, value string) {
	if *field == "" {
		*field = value
	}
}
