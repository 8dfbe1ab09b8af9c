package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// phase is a stretch of a subscription and the rules that held in it.
type phase struct {
	from  time.Time
	rules []rules.Rule
}

// prorate finds, of each renewing quota, the limit of the running period: the
// sum, over the phases of the subscription, of the phase's limit × its days in
// the period ÷ the period's days, rounded up once to a whole unit. A day that
// was begun counts whole, for the phase that it ends in. So a first period, a
// last one that is cut short, and one in which the plan changed follow one rule.
func (t *Terms) prorate(s sales.Subscription, history []phase, now time.Time) error {
	for _, r := range t.Rules {
		if !renews(r) || r.Unlimited || !dated(r.Limit.Period) {
			continue
		}
		calendar, err := period.New(period.Spec{
			Unit: r.Limit.Period, Zone: r.Limit.Timezone, AnchorDay: r.Limit.AnchorDay, WeekStart: r.Limit.WeekStart,
		})
		if err != nil {
			return fmt.Errorf("calendar of rule %s: %w", r.ID, err)
		}
		running := calendar.At(now)
		if units, days, whole := share(r, history, running, s.EndsAt); !whole {
			t.Overrides = append(t.Overrides, prorated(r, units, days, running))
			t.due(running.End)
		}
		if s.EndsAt == nil {
			continue
		}
		// A later period that the end cuts short is prorated once it runs.
		if last := calendar.At(s.EndsAt.Add(-1)); last.Start.After(now) && last.End.After(*s.EndsAt) {
			t.due(last.Start)
		}
	}
	return nil
}

// dated reports a period of days.
func dated(name string) bool {
	return slices.Contains([]string{period.NameDay, period.NameWeek, period.NameMonth, period.NameYear}, name)
}

// share returns the units of a period, and of how many of its days; whole where
// that is the rule's own limit. Limits are at most 2^53 and days 366: the sum
// fits.
func share(r rules.Rule, history []phase, b period.Bounds, ends *time.Time) (units int64, text string, whole bool) {
	first, end := b.Calendar.Day(b.Start), b.Calendar.Day(b.End)
	all := end - first
	if ends != nil && ends.Before(b.End) {
		end = b.Calendar.Day(ends.Add(-1)) + 1
	}
	var sum, held int64
	for i, p := range history {
		from, to := max(first, b.Calendar.Day(p.from)), end
		if i+1 < len(history) {
			to = min(end, b.Calendar.Day(history[i+1].from))
		}
		if to <= from {
			continue
		}
		n, unlimited := limitOf(p.rules, r.ID)
		if unlimited {
			return 0, "", true // what was used then was never limited
		}
		sum, held = sum+n*(to-from), held+to-from
	}
	units = (sum + all - 1) / all
	return units, fmt.Sprintf("%d of %d days", held, all), units == *r.Limit.Limit
}

// limitOf is the limit that a phase's rules gave what r is for, 0 for none.
func limitOf(all []rules.Rule, id string) (n int64, unlimited bool) {
	i := slices.IndexFunc(all, func(r rules.Rule) bool { return r.ID == id })
	if i < 0 {
		return 0, false
	}
	if all[i].Unlimited || all[i].Limit == nil || all[i].Limit.Limit == nil {
		return 0, true
	}
	return *all[i].Limit.Limit, false
}

func prorated(r rules.Rule, units int64, days string, b period.Bounds) overrides.Override {
	end := b.End
	return rule.NormalizeOverride(overrides.Override{
		Reason: "prorated by days: " + days, Subject: r.Subject, Metric: r.Metric, Period: r.Limit.Period,
		Limit: &units, ValidUntil: &end, Origin: r.Origin,
	})
}
