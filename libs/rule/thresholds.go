package rule

import (
	"fmt"
	"slices"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Bounds of thresholds.
const (
	maxThresholds = 10
	maxPercent    = 1000 // use passes the limit by overdraft, or where a limit was lowered
)

// thresholds judges where a quota's use is to be announced.
func (v *validator) thresholds(r rules.Rule) {
	t := r.Thresholds
	if t == nil {
		return
	}
	if l := r.Limit; l != nil && l.Algorithm != rules.AlgorithmQuota {
		v.add("thresholds", "belongs to algorithm quota; leave it out for %s", l.Algorithm)
		return
	}
	if len(t.Percent)+len(t.Absolute) > maxThresholds {
		v.add("thresholds", "must be at most %d in all", maxThresholds)
	}
	v.points("thresholds.percent", t.Percent, maxPercent)
	v.points("thresholds.absolute", t.Absolute, limit.MaxInteger)
}

func (v *validator) points(field string, points []int64, most int64) {
	for i, n := range points {
		if n < 1 || n > most {
			v.add(fmt.Sprintf("%s[%d]", field, i), "must be 1 to %d", most)
		}
		if slices.Contains(points[:i], n) {
			v.add(fmt.Sprintf("%s[%d]", field, i), "must be named once")
		}
	}
}

// sortedThresholds is a copy in ascending order, so that one meaning has one
// spelling.
func sortedThresholds(t *rules.Thresholds) *rules.Thresholds {
	if t == nil {
		return nil
	}
	return &rules.Thresholds{
		Percent:  slices.Sorted(slices.Values(t.Percent)),
		Absolute: slices.Sorted(slices.Values(t.Absolute)),
	}
}
