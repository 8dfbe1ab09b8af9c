package rule

import (
	"math/bits"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

const algorithmsNow = "gcra, fixedWindow, quota"

func (v *validator) limit(r rules.Rule) {
	l := r.Limit
	if l == nil {
		if !r.Unlimited {
			v.add("limit", "must be given, or unlimited must be true")
		}
		return
	}
	switch l.Algorithm {
	case rules.AlgorithmGCRA, rules.AlgorithmFixedWindow:
		v.amount(r)
		v.rate(r)
	case rules.AlgorithmQuota:
		v.amount(r)
		v.quota(l)
	case rules.AlgorithmSlidingWindow, rules.AlgorithmTokenBucket:
		v.notYet("limit.algorithm", l.Algorithm, algorithmsNow)
	default:
		v.add("limit.algorithm", "must be one of %s", algorithmsNow)
	}
}

func (v *validator) amount(r rules.Rule) {
	switch n := r.Limit.Limit; {
	case r.Unlimited && n != nil:
		v.add("limit.limit", "must be left out where unlimited is true")
	case r.Unlimited:
	case n == nil:
		v.add("limit.limit", "must be given; 0 lets nothing pass, unlimited is a field of the rule")
	case *n < 0 || *n > limit.MaxInteger:
		v.add("limit.limit", "must be 0 to %d", int64(limit.MaxInteger))
	case r.Limit.Algorithm == rules.AlgorithmGCRA && *n > limit.MaxGCRALimit:
		v.add("limit.limit", "must be 0 to %d for gcra", int64(limit.MaxGCRALimit))
	}
}

func (v *validator) rate(r rules.Rule) {
	l := r.Limit
	for _, f := range []struct {
		field string
		set   bool
	}{
		{"limit.kind", l.Kind != ""}, {"limit.period", l.Period != ""},
		{"limit.timezone", l.Timezone != ""}, {"limit.anchorDay", l.AnchorDay != 0},
		{"limit.weekStart", l.WeekStart != ""}, {"limit.rollover", l.Rollover != nil},
		{"limit.overdraft", l.Overdraft != ""},
	} {
		if f.set {
			v.add(f.field, "belongs to algorithm quota; leave it out for %s", l.Algorithm)
		}
	}
	window, ok := v.window(l.Window)
	switch {
	case l.Burst == nil:
		if ok {
			v.refill(r, window)
		}
	case l.Algorithm != rules.AlgorithmGCRA:
		v.add("limit.burst", "belongs to algorithm gcra; leave it out for %s", l.Algorithm)
	case r.Unlimited:
		v.add("limit.burst", "must be left out where unlimited is true")
	case l.Limit != nil && *l.Limit == 0:
		if *l.Burst != 0 {
			v.add("limit.burst", "must be left out or 0 where limit is 0, which lets nothing pass")
		}
	case *l.Burst < 1 || *l.Burst > limit.MaxInteger:
		v.add("limit.burst", "must be 1 to %d", int64(limit.MaxInteger))
	case ok:
		v.refill(r, window)
	}
}

func (v *validator) window(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		v.add("limit.window", "must be a duration such as 30s, 1m or 24h")
	case d < minWindow || d > maxWindow || d%time.Second != 0:
		v.add("limit.window", "must be whole seconds, 1s to 8760h")
	default:
		return d, true
	}
	return 0, false
}

// refill refuses gcra numbers whose times the script could not keep exact.
func (v *validator) refill(r rules.Rule, window time.Duration) {
	l := r.Limit
	if l.Algorithm != rules.AlgorithmGCRA || l.Limit == nil || *l.Limit <= 0 || *l.Limit > limit.MaxGCRALimit {
		return
	}
	burst := *l.Limit
	if l.Burst != nil {
		burst = *l.Burst
	}
	if _, ok := limit.RefillTime(*l.Limit, window, burst); ok {
		return
	}
	v.add("limit.burst", "takes too long to refill at this rate to be counted exactly; at most %d", mostBurst(*l.Limit, window))
}

// mostBurst is the largest burst RefillTime takes.
func mostBurst(n int64, window time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(limit.MaxRefill.Microseconds()))
	w := uint64(window.Microseconds())
	if hi >= w {
		return limit.MaxInteger
	}
	q, _ := bits.Div64(hi, lo, w)
	return int64(min(q, limit.MaxInteger))
}

func (v *validator) quota(l *rules.Limit) {
	if l.Window != "" {
		v.add("limit.window", "belongs to rates; a quota has a period")
	}
	if l.Burst != nil {
		v.add("limit.burst", "belongs to algorithm gcra; leave it out for quota")
	}
	v.required("limit.kind", l.Kind, rules.QuotaRenewing, rules.QuotaPrepaid)
	v.required("limit.period", l.Period, period.NameMonth, "hour", "day", "week", "year", "never")
	if l.Timezone != "" && l.Timezone != "UTC" {
		v.notYet("limit.timezone", l.Timezone, "UTC")
	}
	switch {
	case l.AnchorDay < 0 || l.AnchorDay > 31:
		v.add("limit.anchorDay", "must be 1 to 31")
	case l.AnchorDay > 1:
		v.add("limit.anchorDay", "%d is not available yet; available: 1", l.AnchorDay)
	}
	if l.WeekStart != "" {
		v.add("limit.weekStart", "is not available yet: it belongs to period week; leave it out")
	}
	if l.Rollover != nil {
		v.add("limit.rollover", "is not available yet; leave it out")
	}
	if l.Overdraft != "" && l.Overdraft != "none" {
		v.notYet("limit.overdraft", l.Overdraft, "none")
	}
}

// required checks a field that must be now, and may be one of later in time.
func (v *validator) required(field, value, now string, later ...string) {
	if value == "" {
		v.add(field, "must be %s", now)
		return
	}
	v.choice(field, value, []string{now}, later)
}
