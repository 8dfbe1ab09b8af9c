package invoice

import (
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// Held is a plan version that a subscription had in a period.
type Held struct {
	Plan sales.Plan
	// Days are those of the period that its fee is for.
	Days int64
	// FeeOnly: another version held last, and its prices count.
	FeeOnly bool
}

// HeldIn returns what a subscription had in a period of its plan, the version
// that held last at the end; nothing where the two do not meet. plans holds the
// versions of all its phases.
//
// Where the last version prorates by days, each version has the days it held,
// as quotas have: a day that was begun counts whole, for the version that it
// ends in. Otherwise the last one has the whole period.
func HeldIn(s sales.Subscription, plans map[plan.Version]sales.Plan, b period.Bounds) ([]Held, error) {
	var phases []sales.Phase
	for _, p := range s.Phases {
		if p.From.Before(b.End) {
			phases = append(phases, p)
		}
	}
	if len(phases) == 0 || s.EndsAt != nil && (!s.EndsAt.After(b.Start) || !s.EndsAt.After(phases[0].From)) {
		return nil, nil
	}
	last, ok := plans[plan.VersionOf(phases[len(phases)-1])]
	if !ok {
		return nil, missing(s, phases[len(phases)-1])
	}
	first, end := b.Calendar.Day(b.Start), b.Calendar.Day(b.End)
	if last.Proration != sales.ProrationDays {
		return []Held{{Plan: last, Days: end - first}}, nil
	}
	if s.EndsAt != nil && s.EndsAt.Before(b.End) {
		end = b.Calendar.Day(s.EndsAt.Add(-time.Nanosecond)) + 1
	}
	var held []Held
	for i, p := range phases {
		from, to := max(first, b.Calendar.Day(p.From)), end
		if i+1 < len(phases) {
			to = min(end, b.Calendar.Day(phases[i+1].From))
		}
		version, ok := plans[plan.VersionOf(p)]
		if !ok {
			return nil, missing(s, p)
		}
		final := i == len(phases)-1
		if days := max(0, to-from); days > 0 || final {
			held = append(held, Held{Plan: version, Days: days, FeeOnly: !final})
		}
	}
	return held, nil
}

func missing(s sales.Subscription, p sales.Phase) error {
	return fmt.Errorf("subscription %s: no version %d of plan %s", s.ID, p.PlanVersion, p.Plan)
}
