package threshold

import (
	"cmp"
	"iter"
	"strconv"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// noLimit is the limit of a row where the charge had none.
const noLimit = -1

// row is the primary key of table thresholds.
type row struct {
	counter string
	limit   int64 // or noLimit
	point
}

// limitName is the limit in Postgres and in event ids.
func (r row) limitName() string {
	if r.limit == noLimit {
		return "unlimited"
	}
	return strconv.FormatInt(r.limit, 10)
}

// compare orders a counter's thresholds by the use at which they lie. Every
// keeper inserts in this order.
func (r row) compare(o row) int {
	return cmp.Or(cmp.Compare(r.counter, o.counter), cmp.Compare(r.at, o.at), cmp.Compare(r.percent, o.percent),
		cmp.Compare(r.absolute, o.absolute), cmp.Compare(r.limit, o.limit))
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

// observation is the first charge that showed a threshold to be reached.
type observation struct {
	metric                        string
	consumed, refunded, forfeited int64
	at                            time.Time
	decision                      string
}

func (o *observation) used() int64 { return o.consumed - o.refunded + o.forfeited }

// maxUnits bounds a threshold, a limit and a use; gateways never pass it, and
// products of it with a percentage fit an int64.
const (
	maxUnits   = 1 << 53
	maxPercent = 1000
)

var defaultThresholds = rules.DefaultThresholds()

// reached are the rows of the thresholds that a charge's use has reached. A
// limit of 0 has no percentages.
func reached(c *usage.Charge) iter.Seq[row] {
	thresholds := c.Thresholds
	if thresholds == nil {
		thresholds = &defaultThresholds
	}
	r := row{counter: c.Counter, limit: noLimit}
	if c.Limit != nil {
		r.limit = *c.Limit
	}
	used := c.Consumed - c.Refunded + c.Forfeited
	return func(yield func(row) bool) {
		for _, n := range thresholds.Percent {
			if r.limit <= 0 || n <= 0 || n > maxPercent {
				continue
			}
			r.point = point{percent: n, at: percentOf(r.limit, n)}
			if used >= r.at && !yield(r) {
				return
			}
		}
		for _, n := range thresholds.Absolute {
			r.point = point{absolute: n, at: n}
			if n > 0 && n <= maxUnits && used >= n && !yield(r) {
				return
			}
		}
	}
}

// percentOf is the least use that is n percent of the limit.
func percentOf(limit, n int64) int64 {
	whole, rest := limit/100*n, limit%100*n
	return whole + (rest+99)/100
}

// plausible refuses totals and limits that no gateway makes.
func plausible(c *usage.Charge) bool {
	limit := int64(0)
	if c.Limit != nil {
		limit = *c.Limit
	}
	for _, n := range [...]int64{c.Consumed, c.Refunded, c.Forfeited, limit} {
		if n < 0 || n > maxUnits {
			return false
		}
	}
	return true
}
