package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// Bounds of plans. A change of one subscription writes at most two rules and
// two overrides a template, three rows each: well under the 500 of a transaction.
const (
	maxRules  = 32
	maxPrices = 32
	maxTiers  = 64
)

var invoiced = []string{period.NameDay, period.NameWeek, period.NameMonth, period.NameYear}

// ValidatePlan returns what is wrong with a plan as REST takes it, nil if
// nothing is. Fields are reported in any order, each at least once.
func ValidatePlan(p sales.Plan) []FieldError {
	p = NormalizePlan(p)
	v := &validator{}
	v.id("id", p.ID)
	v.text("name", p.Name, 0, maxName)
	v.currency("currency", p.Currency)
	if p.Proration != sales.ProrationNone && p.Proration != sales.ProrationDays {
		v.add("proration", "must be none or days")
	}
	v.fee("baseFee", p.BaseFee, p.Currency)
	if !v.calendar(p) {
		return v.errs // rules and prices depend on it
	}
	if len(p.Rules) < 1 || len(p.Rules) > maxRules {
		v.add("rules", "must be 1 to %d", maxRules)
		return v.errs
	}
	v.templates(p)
	v.prices(p)
	return v.errs
}

// NormalizePlan returns p with its defaults filled in; it is idempotent.
// Templates stay as they are but for what only the control plane writes.
func NormalizePlan(p sales.Plan) sales.Plan {
	p.Period = cmp.Or(p.Period, period.NameMonth)
	p.Proration = cmp.Or(p.Proration, sales.ProrationNone)
	if p.Period == period.NameMonth {
		p.AnchorDay = cmp.Or(p.AnchorDay, 1)
	}
	if p.Period == period.NameWeek {
		p.WeekStart = cmp.Or(p.WeekStart, "monday")
	}
	p.Rules = slices.Clone(p.Rules)
	for i := range p.Rules {
		p.Rules[i].Limit = rule.Strip(rules.Rule{Limit: p.Rules[i].Limit}).Limit
	}
	return p
}

func (v *validator) calendar(p sales.Plan) bool {
	if !slices.Contains(invoiced, p.Period) {
		v.add("period", "must be one of day, week, month, year")
		return false
	}
	_, err := calendarOf(p, sales.Customer{})
	var bad *period.SpecError
	if errors.As(err, &bad) {
		for _, f := range bad.Fields {
			v.add(f.Field, "%s", f.Message)
		}
	}
	return err == nil
}

// calendarOf is the calendar a plan is invoiced by.
func calendarOf(p sales.Plan, c sales.Customer) (period.Calendar, error) {
	return period.New(period.Spec{Unit: p.Period, Zone: Zone(p, c), AnchorDay: p.AnchorDay, WeekStart: p.WeekStart})
}

// Zone is the name of the zone that a plan's periods are cut in for a customer.
func Zone(p sales.Plan, c sales.Customer) string { return cmp.Or(p.Timezone, c.Timezone, "UTC") }

// PeriodAt returns the period of a plan that holds at, for a customer: what is
// invoiced at once, and with whose end a subscription that is cancelled ends.
// The plan and customer must be valid.
func PeriodAt(p sales.Plan, c sales.Customer, at time.Time) (period.Bounds, error) {
	calendar, err := calendarOf(p, c)
	if err != nil {
		return period.Bounds{}, fmt.Errorf("calendar of plan %s: %w", p.ID, err)
	}
	return calendar.At(at), nil
}
