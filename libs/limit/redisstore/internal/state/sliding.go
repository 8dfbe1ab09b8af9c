package state

import (
	"math/bits"

	"github.com/sluice-platform/sluice/libs/limit"
)

// sliding: a counts the window that ends at b, c the one before, of which the
// part counts that the window ending now still covers.
func (v Values) sliding(st *limit.State, n *limit.Counter, waits bool) {
	size := n.Window.Microseconds()
	left := min(v.B-v.Now, size)
	weight := mulDivUp(v.C, left, size)
	st.Remaining = max(0, n.Limit-v.A-weight)
	if v.A+weight > 0 {
		st.Reset = micros(v.until(n.Limit-st.Remaining-1, left, size))
	}
	if waits {
		st.RetryAfter = micros(v.until(n.Limit-n.Cost, left, size))
	}
}

// until is the time, µs, until no more than used is taken, if nothing is added.
// used is at least 0.
func (v Values) until(used, left, size int64) int64 {
	// A clock that was set back leaves the running window longer than one.
	early := v.B - v.Now - left
	switch {
	case v.A+mulDivUp(v.C, left, size) <= used:
		return 0
	case v.A <= used:
		// In this window, as the last one moves out of sight.
		return early + left - mulDivDown(used-v.A, size, v.C)
	}
	// In the next one, whose last is this one.
	return v.B - v.Now + size - mulDivDown(used, size, v.A)
}

// mulDivDown is a·b ÷ m, where that is below 2^63.
func mulDivDown(a, b, m int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(m))
	return int64(q)
}

func mulDivUp(a, b, m int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(hi, lo, uint64(m))
	if r > 0 {
		q++
	}
	return int64(q)
}
