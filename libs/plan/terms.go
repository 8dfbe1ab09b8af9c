package plan

import (
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// Version names a version of a plan.
type Version struct {
	Plan   string
	Number int64
}

// VersionOf is the plan version of a phase.
func VersionOf(p sales.Phase) Version { return Version{p.Plan, p.PlanVersion} }

// Terms are what a subscription stands for from an instant on.
type Terms struct {
	// Rules are normalized, one for each template, in their order.
	Rules []rules.Rule
	// Overrides are the prorated quotas of running periods.
	Overrides []overrides.Override
	// Due is when the terms become others by themselves; zero is never.
	Due time.Time
}

// TermsAt works out the terms of a subscription at now. plans holds the plan
// versions of all its phases, as they are stored: valid, normalized. One that has
// ended stands for nothing.
func TermsAt(s sales.Subscription, c sales.Customer, plans map[Version]sales.Plan, now time.Time) (Terms, error) {
	var t Terms
	if s.Status == sales.StatusEnded || s.EndsAt != nil && !now.Before(*s.EndsAt) {
		return t, nil
	}
	history := make([]phase, len(s.Phases))
	for i, p := range s.Phases {
		version, ok := plans[VersionOf(p)]
		if !ok {
			return t, fmt.Errorf("subscription %s: no version %d of plan %s", s.ID, p.PlanVersion, p.Plan)
		}
		history[i] = phase{from: p.From, rules: Rules(version, c, s.ID)}
		if i == len(s.Phases)-1 {
			t.Rules = Rules(version, c, s.ID)
			if version.Proration == sales.ProrationDays {
				if err := t.prorate(s, history, now); err != nil {
					return t, err
				}
			}
		}
	}
	if s.EndsAt != nil {
		t.until(*s.EndsAt)
	}
	return t, nil
}

// Rules are what a plan's templates are for a customer's subscription, in their
// order, normalized. The plan and customer must be valid.
func Rules(p sales.Plan, c sales.Customer, subscription string) []rules.Rule {
	out := make([]rules.Rule, len(p.Rules))
	for i, template := range p.Rules {
		out[i] = ruleOf(p, template, c, subscription)
	}
	return out
}

// until ends the rules by themselves: whoever deletes them may be late.
func (t *Terms) until(end time.Time) {
	t.due(end)
	for i := range t.Rules {
		t.Rules[i].ValidUntil = &end
	}
}

func (t *Terms) due(at time.Time) {
	if t.Due.IsZero() || at.Before(t.Due) {
		t.Due = at
	}
}
