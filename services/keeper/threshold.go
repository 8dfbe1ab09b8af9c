package keeper

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strconv"

	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// noLimit stands for unlimited where limits are compared.
const noLimit = -1

// arming is what a threshold is announced at most once in: a counter, which
// holds its period, under one limit. It follows from a charge alone, so it
// does not depend on the order in which charges are read. list tells apart
// rules that charge one counter under one limit with other thresholds.
type arming struct {
	counter string
	limit   int64 // or noLimit
	list    uint64
}

// name is the arming in Postgres and in event ids.
func (a arming) name() string {
	if a.limit == noLimit {
		return "unlimited"
	}
	return strconv.FormatInt(a.limit, 10)
}

func armingOf(c *usage.Charge) arming {
	a := arming{counter: c.Counter, limit: noLimit, list: listOf(c.Thresholds)}
	if c.Limit != nil {
		a.limit = *c.Limit
	}
	return a
}

var listSeed = maphash.MakeSeed()

// listOf is 0 for the default, and within this process tells lists apart.
func listOf(t *rules.Thresholds) uint64 {
	if t == nil {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(listSeed)
	for _, n := range t.Percent {
		maphash.WriteComparable(&h, n)
	}
	_ = h.WriteByte('|') // never fails
	for _, n := range t.Absolute {
		maphash.WriteComparable(&h, n)
	}
	return h.Sum64() | 1
}

// point is one threshold, and the use, in units, at which it lies.
type point struct {
	percent, absolute int64 // one of them is 0
	at                int64
}

// name is the threshold in Postgres and in event ids.
func (p point) name() string {
	if p.percent != 0 {
		return strconv.FormatInt(p.percent, 10) + "%"
	}
	return strconv.FormatInt(p.absolute, 10)
}

// maxUnits bounds what is taken for a threshold, a limit or a use; gateways
// never pass it, and products of it with a percentage fit an int64.
const (
	maxUnits   = 1 << 53
	maxPercent = 1000
)

// pointsOf are a charge's thresholds, the lowest first. Without a limit, or
// with one of 0, there is nothing to take a percentage of.
func pointsOf(c *usage.Charge) []point {
	t := c.Thresholds
	if t == nil {
		t = &defaultThresholds
	}
	points := make([]point, 0, len(t.Percent)+len(t.Absolute))
	for _, n := range t.Percent {
		if c.Limit != nil && *c.Limit > 0 && n > 0 && n <= maxPercent {
			points = append(points, point{percent: n, at: percentOf(*c.Limit, n)})
		}
	}
	for _, n := range t.Absolute {
		if n > 0 && n <= maxUnits {
			points = append(points, point{absolute: n, at: n})
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.percent, b.percent), cmp.Compare(a.absolute, b.absolute))
	})
	return points
}

var defaultThresholds = rules.DefaultThresholds()

// percentOf is the least use that is n percent of the limit.
func percentOf(limit, n int64) int64 {
	whole, rest := limit/100*n, limit%100*n
	return whole + (rest+99)/100
}

// usedBy is what stands against the limit after a charge.
func usedBy(c *usage.Charge) int64 { return c.Consumed - c.Refunded + c.Forfeited }

// judged says whether a charge's totals can be held against thresholds. A
// pending one has none; counters of shadow rules limit nothing, so nobody is
// to be warned of them.
func judged(c *usage.Charge) bool {
	if !foldable(*c) || c.Pending || shadowed(c.Counter) {
		return false
	}
	limit := int64(0)
	if c.Limit != nil {
		limit = *c.Limit
	}
	for _, n := range []int64{c.Consumed, c.Refunded, c.Forfeited, limit} {
		if n < 0 || n > maxUnits {
			return false
		}
	}
	return c.Amount > -maxUnits && c.Amount < maxUnits
}

// everything is above any use.
const everything = math.MaxInt64
