package rule

import (
	"errors"
	"math/bits"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

const algorithmList = "gcra, fixedWindow, slidingWindow, tokenBucket, quota"

// bucket reports an algorithm that refills steadily, and so has a burst.
func bucket(algorithm string) bool {
	return algorithm == rules.AlgorithmGCRA || algorithm == rules.AlgorithmTokenBucket
}

// limit judges a limit's words; amounts judges its numbers.
func (v *validator) limit(r rules.Rule) {
	l := r.Limit
	if l == nil {
		if !r.Unlimited {
			v.add("limit", "must be given, or unlimited must be true")
		}
		return
	}
	switch l.Algorithm {
	case rules.AlgorithmQuota:
		v.quota(r)
	default:
		if rateNames[l.Algorithm].name == "" {
			v.add("limit.algorithm", "must be one of %s", algorithmList)
			v.unknownLimit(l)
			return
		}
		v.rate(l)
	}
}

// unknownLimit judges what is right or wrong whatever the algorithm is.
func (v *validator) unknownLimit(l *rules.Limit) {
	if l.Window != "" {
		v.window("limit.window", l.Window)
	}
	if l.Burst != nil && (*l.Burst < 0 || *l.Burst > limit.MaxInteger) {
		v.add("limit.burst", "must be 1 to %d", int64(limit.MaxInteger))
	}
	if l.Period != "" {
		v.calendar(l)
	}
}

func (v *validator) rate(l *rules.Limit) {
	for _, f := range []struct {
		field string
		set   bool
	}{
		{"limit.kind", l.Kind != ""}, {"limit.period", l.Period != ""},
		{"limit.timezone", l.Timezone != ""}, {"limit.anchorDay", l.AnchorDay != 0},
		{"limit.weekStart", l.WeekStart != ""}, {"limit.overdraft", l.Overdraft != ""},
	} {
		if f.set {
			v.add(f.field, "belongs to algorithm quota; leave it out for %s", l.Algorithm)
		}
	}
	v.window("limit.window", l.Window)
}

func (v *validator) window(field, s string) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		v.add(field, "must be a duration such as 30s, 1m or 24h")
	case d < minWindow || d > maxWindow || d%time.Second != 0:
		v.add(field, "must be whole seconds, 1s to 8760h")
	}
}

func (v *validator) quota(r rules.Rule) {
	l := r.Limit
	v.choice("limit.overdraft", l.Overdraft, []string{rules.OverdraftNone, rules.OverdraftOnce}, nil)
	if l.Kind == rules.QuotaPrepaid {
		v.wallet(r)
		return
	}
	v.choice("limit.kind", l.Kind, []string{rules.QuotaRenewing, rules.QuotaPrepaid}, nil)
	if l.Window != "" {
		v.add("limit.window", "belongs to rates; a quota has a period")
	}
	v.calendar(l)
}

func (v *validator) calendar(l *rules.Limit) {
	spec := period.Spec{Unit: l.Period, Zone: l.Timezone, AnchorDay: l.AnchorDay, WeekStart: l.WeekStart}
	var bad *period.SpecError
	if _, err := period.New(spec); errors.As(err, &bad) {
		for _, f := range bad.Fields {
			v.add("limit."+f.Field, "%s", f.Message)
		}
	}
}

// wallet judges the words of a prepaid quota: a tenant's balance, which has
// neither a number of the rule's nor a period.
func (v *validator) wallet(r rules.Rule) {
	l := r.Limit
	for _, f := range []struct {
		field string
		set   bool
	}{
		{"limit.window", l.Window != ""}, {"limit.period", l.Period != ""}, {"limit.timezone", l.Timezone != ""},
		{"limit.anchorDay", l.AnchorDay != 0}, {"limit.weekStart", l.WeekStart != ""},
	} {
		if f.set {
			v.add(f.field, "must be left out for a prepaid quota, which never renews")
		}
	}
	if r.Unlimited {
		v.add("unlimited", "must be left out for a prepaid quota; without limit it lifts the wallet, too")
	}
	if slices.Contains(kinds, r.Subject.Kind) && r.Subject.Kind != rules.SubjectTenant {
		v.add("subject.kind", "must be tenant for a prepaid quota: a wallet is a customer's")
	}
	if r.OnMissing == rules.MissingShared {
		v.add("onMissing", "must be skip or deny for a prepaid quota: nobody tops up a shared one")
	}
}

// amounts judges a limit's numbers.
func (v *validator) amounts(r rules.Rule) {
	l := r.Limit
	if l == nil {
		return
	}
	if l.Algorithm == rules.AlgorithmQuota && l.Kind == rules.QuotaPrepaid {
		v.walletAmounts(l)
		return
	}
	v.amount(r)
	switch {
	case l.Algorithm == rules.AlgorithmQuota:
		if l.Burst != nil {
			v.add("limit.burst", "belongs to gcra and tokenBucket; leave it out for quota")
		}
		v.quotaAmounts(r)
		return
	case rateNames[l.Algorithm].name == "":
		return // said elsewhere
	case l.Rollover != nil:
		v.add("limit.rollover", "belongs to algorithm quota; leave it out for %s", l.Algorithm)
	}
	if l.Burst != nil {
		v.burst(r)
	} else if bucket(l.Algorithm) {
		v.refill(l)
	}
}

func (v *validator) walletAmounts(l *rules.Limit) {
	for _, f := range []struct {
		field string
		given *int64
	}{{"limit.limit", l.Limit}, {"limit.burst", l.Burst}, {"limit.rollover", l.Rollover}} {
		if f.given != nil {
			v.add(f.field, "must be left out for a prepaid quota, whose units are topped up")
		}
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
	case bucket(r.Limit.Algorithm) && *n > limit.MaxGCRALimit:
		v.add("limit.limit", "must be 0 to %d for %s", int64(limit.MaxGCRALimit), r.Limit.Algorithm)
	}
}

func (v *validator) burst(r rules.Rule) {
	l := r.Limit
	switch {
	case !bucket(l.Algorithm):
		v.add("limit.burst", "belongs to gcra and tokenBucket; leave it out for %s", l.Algorithm)
	case r.Unlimited:
		v.add("limit.burst", "must be left out where unlimited is true")
	case l.Limit != nil && *l.Limit == 0:
		if *l.Burst != 0 {
			v.add("limit.burst", "must be left out or 0 where limit is 0, which lets nothing pass")
		}
	case *l.Burst < 1 || *l.Burst > limit.MaxInteger:
		v.add("limit.burst", "must be 1 to %d", int64(limit.MaxInteger))
	default:
		v.refill(l)
	}
}

// refill refuses numbers whose times the script could not keep exact.
func (v *validator) refill(l *rules.Limit) {
	window, err := time.ParseDuration(l.Window)
	if err != nil || window < minWindow || window > maxWindow || l.Limit == nil || *l.Limit <= 0 || *l.Limit > limit.MaxGCRALimit {
		return // said elsewhere
	}
	burst := *l.Limit
	if l.Burst != nil {
		burst = *l.Burst
	}
	if _, ok := limit.RefillTime(*l.Limit, window, burst); !ok {
		v.add("limit.burst", "takes too long to refill at this rate to be counted exactly; at most %d", mostBurst(*l.Limit, window))
	}
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

func (v *validator) quotaAmounts(r rules.Rule) {
	l := r.Limit
	switch {
	case r.Unlimited && l.Overdraft == rules.OverdraftOnce:
		v.add("limit.overdraft", "must be left out where unlimited is true")
	case l.Rollover == nil:
	case r.Unlimited:
		v.add("limit.rollover", "must be left out where unlimited is true")
	case l.Period == period.NameNever:
		v.add("limit.rollover", "must be left out for period never, which has no next one")
	case *l.Rollover < 0 || l.Limit != nil && *l.Limit >= 0 && *l.Rollover > limit.MaxInteger-*l.Limit:
		v.add("limit.rollover", "must be 0 or more, and with limit at most %d", int64(limit.MaxInteger))
	}
}
