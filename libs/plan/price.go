package plan

import (
	"fmt"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

func (v *validator) prices(p sales.Plan) {
	if len(p.Prices) > maxPrices {
		v.add("prices", "must be at most %d", maxPrices)
		return
	}
	counted := map[string]bool{}
	for _, t := range p.Rules {
		counted[t.Metric] = counted[t.Metric] || invoices(p, t)
	}
	seen := map[string]bool{}
	for i, price := range p.Prices {
		at := fmt.Sprintf("prices[%d].", i)
		switch {
		case !counted[price.Metric]:
			v.add(at+"metric", "must be one that a quota of the plan counts by the plan's period, or a prepaid one: only what is counted can be invoiced")
		case seen[price.Metric]:
			v.add(at+"metric", "has a price already: a metric has one")
		}
		seen[price.Metric] = true
		if price.Included < 0 || price.Included > limit.MaxInteger {
			v.add(at+"included", "must be 0 to %d", int64(limit.MaxInteger))
		}
		v.model(at, price, p.Currency)
	}
}

// Free reports a plan that nothing is ever owed for, whatever is used: without a
// fee and prices, no line of an invoice is of it.
func Free(p sales.Plan) bool {
	fee, ok := Nanos(p.BaseFee)
	return ok && fee == 0 && len(p.Prices) == 0
}

// invoices reports a template whose counter is that of a period of the plan, or
// a wallet's; a shadow rule's counts nothing that is sold.
func invoices(p sales.Plan, t sales.Template) bool {
	r := ruleOf(p, t, sample, "sub")
	if r.Limit == nil || r.Limit.Algorithm != rules.AlgorithmQuota || r.Mode != rules.ModeEnforce {
		return false
	}
	if r.Limit.Kind == rules.QuotaPrepaid {
		return true
	}
	own := sales.Template{Limit: &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaRenewing}}
	plans := ruleOf(p, own, sample, "sub").Limit
	return r.Limit.Period == plans.Period && r.Limit.Timezone == plans.Timezone &&
		r.Limit.AnchorDay == plans.AnchorDay && r.Limit.WeekStart == plans.WeekStart
}

func (v *validator) model(at string, p sales.Price, currency string) {
	switch p.Model {
	case sales.PriceFlat:
		if len(p.Tiers) > 0 {
			v.add(at+"tiers", "belongs to models graduated and volume; leave it out for flat")
		}
		if p.UnitPrice == "" {
			v.add(at+"unitPrice", `must be given for flat, a decimal in quotes such as "0.0004"`)
			return
		}
		v.unitPrice(at+"unitPrice", p.UnitPrice)
	case sales.PriceGraduated, sales.PriceVolume:
		if p.UnitPrice != "" {
			v.add(at+"unitPrice", "belongs to model flat; each tier has its own")
		}
		v.tiers(at+"tiers", p.Tiers, currency)
	default:
		v.add(at+"model", "must be flat, graduated or volume")
	}
}

func (v *validator) tiers(at string, tiers []sales.Tier, currency string) {
	if len(tiers) < 1 || len(tiers) > maxTiers {
		v.add(at, "must be 1 to %d", maxTiers)
	}
	above := int64(0)
	for i, t := range tiers {
		field := fmt.Sprintf("%s[%d].", at, i)
		last := i == len(tiers)-1
		switch {
		case last && t.UpTo != nil:
			v.add(field+"upTo", "must be left out of the last tier, which has no end")
		case last:
		case t.UpTo == nil:
			v.add(field+"upTo", "must be given: only the last tier has no end")
		case *t.UpTo <= above || *t.UpTo > limit.MaxInteger:
			v.add(field+"upTo", "must be %d to %d: each tier ends above the one before", above+1, int64(limit.MaxInteger))
		default:
			above = *t.UpTo
		}
		v.unitPrice(field+"unitPrice", t.UnitPrice)
		v.fee(field+"flatFee", t.FlatFee, currency)
	}
}
