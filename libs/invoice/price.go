package invoice

import (
	"fmt"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// Part is a stretch of units under one price, or a fee of a tier.
type Part struct {
	// Quantity is units; 0 of a fee.
	Quantity int64
	// UnitPrice is as the plan says it; "0" of what is included.
	UnitPrice string
	// Included units cost nothing; Fee is a tier's, due once.
	Included, Fee bool
	// Minor is the amount in minor units of the currency.
	Minor int64
}

// Price works out what quantity units cost by a valid price, in minor units of
// digits digits. A quantity below 1 costs nothing and has no parts.
func Price(p sales.Price, digits int, quantity int64) ([]Part, error) {
	if quantity < 1 {
		return nil, nil
	}
	var parts []Part
	if n := min(p.Included, quantity); n > 0 {
		parts = append(parts, Part{Quantity: n, UnitPrice: "0", Included: true})
		quantity -= n
	}
	if quantity == 0 {
		return parts, nil
	}
	b := bill{digits: digits, parts: parts}
	switch p.Model {
	case sales.PriceFlat:
		b.units(quantity, p.UnitPrice)
	case sales.PriceVolume:
		t := tierOf(p.Tiers, quantity)
		b.units(quantity, t.UnitPrice)
		b.fee(t.FlatFee)
	case sales.PriceGraduated:
		b.graduated(p.Tiers, quantity)
	default:
		return nil, fmt.Errorf("price of %s: no model %q", p.Metric, p.Model)
	}
	if b.err != nil {
		return nil, fmt.Errorf("price of %s: %w", p.Metric, b.err)
	}
	return b.parts, nil
}

// tierOf is the tier that the last of the units falls in; the last has no end.
func tierOf(tiers []sales.Tier, quantity int64) sales.Tier {
	for _, t := range tiers {
		if t.UpTo == nil || quantity <= *t.UpTo {
			return t
		}
	}
	return sales.Tier{}
}

// bill collects parts until one cannot be worked out.
type bill struct {
	digits int
	parts  []Part
	err    error
}

func (b *bill) graduated(tiers []sales.Tier, quantity int64) {
	below := int64(0)
	for _, t := range tiers {
		n := quantity - below
		if t.UpTo != nil {
			n = min(n, *t.UpTo-below)
			below = *t.UpTo
		}
		b.units(n, t.UnitPrice)
		b.fee(t.FlatFee)
		if t.UpTo == nil || quantity <= below {
			return
		}
	}
}

func (b *bill) units(quantity int64, price string) {
	minor := b.amount(quantity, price)
	if price == "" {
		price = "0"
	}
	b.parts = append(b.parts, Part{Quantity: quantity, UnitPrice: price, Minor: minor})
}

func (b *bill) fee(fee string) {
	if minor := b.amount(1, fee); minor > 0 {
		b.parts = append(b.parts, Part{Fee: true, Minor: minor})
	}
}

func (b *bill) amount(quantity int64, price string) int64 {
	nanos, ok := plan.Nanos(price)
	if !ok {
		b.err = fmt.Errorf("%q is no price", price)
		return 0
	}
	minor, err := amountOf(quantity, nanos, b.digits)
	if err != nil {
		b.err = err
	}
	return minor
}

// Sum adds up what parts cost.
func Sum(parts []Part) (int64, error) {
	total := int64(0)
	var err error
	for _, p := range parts {
		if total, err = add(total, p.Minor); err != nil {
			return 0, err
		}
	}
	return total, nil
}
