package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// ruleOf makes a template the rule of a customer's subscription, with all its
// defaults. Its id follows from the subscription and what it is for, not from
// the plan: under another version or plan it is the same rule.
func ruleOf(p sales.Plan, t sales.Template, c sales.Customer, subscription string) rules.Rule {
	r := rules.Rule{
		Name: cmp.Or(t.Name, p.Name), Subject: rules.Subject{Kind: rules.SubjectTenant, Value: c.ID},
		Scope: t.Scope, Metric: t.Metric, Limit: t.Limit, Unlimited: t.Unlimited, Cost: t.Cost,
		Mode: t.Mode, OnStoreLoss: t.OnStoreLoss, Priority: t.Priority, CountCached: t.CountCached,
		Thresholds: t.Thresholds, RefundOn: t.RefundOn,
		Origin: &rules.Origin{Subscription: subscription, Plan: p.ID, PlanVersion: p.Version},
	}
	if r.Limit != nil {
		l := *r.Limit
		fillCalendar(&l, p, c)
		r.Limit = &l
	}
	r = rule.Normalize(r)
	r.ID = subscription + ":" + place(r)
	return r
}

// fillCalendar puts the plan's calendar where a renewing quota names none.
func fillCalendar(l *rules.Limit, p sales.Plan, c sales.Customer) {
	if l.Algorithm != rules.AlgorithmQuota || l.Kind == rules.QuotaPrepaid {
		return
	}
	if l.Period == "" {
		l.Period = p.Period
		l.AnchorDay = cmp.Or(l.AnchorDay, p.AnchorDay)
		l.WeekStart = cmp.Or(l.WeekStart, p.WeekStart)
	}
	if l.Period != period.NameNever {
		l.Timezone = cmp.Or(l.Timezone, p.Timezone, c.Timezone)
	}
}

// place names what a normalized rule is for within its subscription: metric and
// horizon, and a digest of scope and mode where it does not hold everywhere. At
// most 84 bytes.
func place(r rules.Rule) string {
	name := r.Metric + ":" + horizon(r.Limit)
	if shadow := r.Mode == rules.ModeShadow; shadow || !r.Scope.IsZero() {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %t", r.Scope.Service, r.Scope.Endpoint, shadow))
		name += ":" + hex.EncodeToString(sum[:4])
	}
	return name
}

func horizon(l *rules.Limit) string {
	switch {
	case l == nil:
		return "any"
	case l.Kind == rules.QuotaPrepaid:
		return rules.QuotaPrepaid
	case l.Algorithm == rules.AlgorithmQuota:
		return l.Period
	}
	window, err := time.ParseDuration(l.Window)
	if err != nil {
		return l.Window // refused elsewhere
	}
	return fmt.Sprintf("%ds", int64(window/time.Second))
}

// sample stands for whoever subscribes while a plan is judged.
var sample = sales.Customer{ID: "customer"}

// templates judges each as the rule it would be, and what no two may share.
func (v *validator) templates(p sales.Plan) {
	places := map[string]int{}
	quotas := map[string]int{}
	for i, t := range p.Rules {
		at := fmt.Sprintf("rules[%d].", i)
		r := ruleOf(p, t, sample, "sub")
		for _, e := range rule.Validate(r) {
			v.add(at+e.Field, "%s", e.Message)
		}
		if first, taken := places[r.ID]; taken {
			v.add(at+"metric", "must differ in metric, scope or window from rules[%d]: one place has one rule", first)
			continue
		}
		places[r.ID] = i
		if p.Proration != sales.ProrationDays || !renews(r) {
			continue
		}
		quota := r.Metric + " " + r.Limit.Period
		if first, taken := quotas[quota]; taken {
			v.add(at+"metric", "is counted by the %s in rules[%d] too: a plan that prorates may have one quota a metric and period", r.Limit.Period, first)
			continue
		}
		quotas[quota] = i
	}
}

// renews reports a quota of calendar periods.
func renews(r rules.Rule) bool {
	return r.Limit != nil && r.Limit.Algorithm == rules.AlgorithmQuota && r.Limit.Kind == rules.QuotaRenewing
}

// Metrics lists what a plan's rules count, each once.
func Metrics(p sales.Plan) map[string]bool {
	out := map[string]bool{}
	for _, t := range p.Rules {
		out[t.Metric] = true
	}
	return out
}

// Unknown has a better message for a field that plans do not have.
func Unknown(field string) (message string, ok bool) {
	if _, below, found := strings.Cut(field, "]."); found && strings.HasPrefix(field, "rules[") {
		switch below {
		case "id", "subject", "origin", "version":
			return "is not part of a template: whoever subscribes has it", true
		}
	}
	return "", false
}
