package rule

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Strip takes out what the control plane alone writes into a rule, besides its
// version. r is not changed and shares no Limit with the result.
func Strip(r rules.Rule) rules.Rule {
	r.Origin = nil
	if r.Limit != nil {
		l := *r.Limit
		l.Previous, l.Since = nil, nil
		r.Limit = &l
	}
	return r
}

// Carry completes next, a valid rule that takes the place of before at now, with
// what follows from before, nil where there was none:
//
//   - limit.previous: a change of timezone, anchorDay or weekStart takes effect
//     at the end of the running period, until which gateways go on counting by
//     the calendar that was in force. Another period is another counter at once.
//   - limit.since: when the quota was first given a rollover.
//
// A rule that is deleted and created again takes effect with its own calendar.
func Carry(before, next *rules.Rule, now time.Time) error {
	origin := next.Origin
	*next = Strip(*next)
	next.Origin = origin
	l := next.Limit
	if l == nil || l.Algorithm != rules.AlgorithmQuota || l.Kind == rules.QuotaPrepaid {
		return nil
	}
	var was *rules.Limit
	if before != nil && before.Limit != nil && before.Limit.Algorithm == rules.AlgorithmQuota && before.Limit.Kind != rules.QuotaPrepaid {
		was = before.Limit
	}
	if l.Rollover != nil && *l.Rollover > 0 {
		since := now.UTC().Truncate(time.Second)
		l.Since = &since
		if was != nil && was.Since != nil {
			l.Since = was.Since
		}
	}
	if was == nil || was.Period != l.Period || l.Period == period.NameNever {
		return nil
	}
	return carryCalendar(was, l, now)
}

// carryCalendar finds the calendars that next still needs: the one the running
// period is counted by, where next has another, and the one before that, where
// the running period is the short one after a change.
func carryCalendar(was, next *rules.Limit, now time.Time) error {
	calendar, err := calendarOf(was)
	if err != nil {
		return err
	}
	own := rules.Calendar{Timezone: next.Timezone, AnchorDay: next.AnchorDay, WeekStart: next.WeekStart}
	to, err := newCalendar(next.Period, own)
	if err != nil {
		return err
	}
	running := calendar.At(now)
	// The steps that have led to the running period, and are still needed.
	var steps []rules.Calendar
	current := rules.Calendar{Timezone: was.Timezone, AnchorDay: was.AnchorDay, WeekStart: was.WeekStart}
	for _, p := range was.Previous {
		if now.Before(p.Until) {
			current = p // what was to come after it is replaced
			break
		}
		if running.Start.Equal(p.Until) { // it matters while its first period runs
			steps = append(steps, p)
		}
	}
	if running.Calendar != to {
		current.Until = running.End
		steps = append(steps, current)
	}
	next.Previous = steps
	return nil
}

// CarryStored is Carry after a rule as it is stored, nil where there is none.
func CarryStored(stored []byte, next *rules.Rule, now time.Time) error {
	var before *rules.Rule
	if stored != nil {
		before = new(rules.Rule)
		if err := json.Unmarshal(stored, before); err != nil {
			return fmt.Errorf("decode stored rule: %w", err)
		}
	}
	if err := Carry(before, next, now); err != nil {
		return fmt.Errorf("carry calendar of rule %s: %w", next.ID, err)
	}
	return nil
}
