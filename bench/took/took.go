// Package took counts how long things took, in buckets that are 1 % wide, so that processes can report millions of
// times in a few lines; that is also how exact a quantile is.
package took

import (
	"math"
	"time"
)

const width = 1.01

// Times is a histogram. The zero value is empty; its fields are for JSON. Not safe for concurrent use.
type Times struct {
	Buckets map[int]int64
	N       int64
	Max     time.Duration
}

// Count counts a time.
func (t *Times) Count(d time.Duration) {
	if t.Buckets == nil {
		t.Buckets = map[int]int64{}
	}
	t.Buckets[int(math.Log(float64(max(d, time.Nanosecond)))/math.Log(width))]++
	t.N++
	t.Max = max(t.Max, d)
}

// Add counts another's.
func (t *Times) Add(o *Times) {
	if t.Buckets == nil {
		t.Buckets = map[int]int64{}
	}
	for b, n := range o.Buckets {
		t.Buckets[b] += n
	}
	t.N += o.N
	t.Max = max(t.Max, o.Max)
}

// Quantile is the time within which the share q of all was done; 0 of none.
func (t *Times) Quantile(q float64) time.Duration {
	rank := int64(math.Ceil(q * float64(t.N)))
	lowest, highest := math.MaxInt, math.MinInt
	for b := range t.Buckets {
		lowest, highest = min(lowest, b), max(highest, b)
	}
	for b := lowest; b <= highest; b++ {
		if rank -= t.Buckets[b]; rank <= 0 {
			return min(t.Max, time.Duration(math.Pow(width, float64(b)+1)))
		}
	}
	return t.Max
}
