package limit

import (
	"math/bits"
	"time"
)

// RefillTime returns how long limit units per window need for n units, rounded
// down to microseconds; ok is false above MaxRefill.
func RefillTime(limit int64, window time.Duration, n int64) (d time.Duration, ok bool) {
	micros, _, ok := Emission(limit, window, n)
	if !ok {
		return 0, false
	}
	return time.Duration(micros) * time.Microsecond, true
}

// Emission returns n × window ÷ limit in microseconds, exactly: whole
// microseconds and rem ÷ limit of one. ok is false above MaxRefill.
func Emission(limit int64, window time.Duration, n int64) (micros, rem int64, ok bool) {
	if limit <= 0 || n < 0 || window < 0 {
		return 0, 0, false
	}
	hi, lo := bits.Mul64(uint64(n), uint64(window.Microseconds()))
	if hi >= uint64(limit) {
		return 0, 0, false
	}
	q, r := bits.Div64(hi, lo, uint64(limit))
	if q > uint64(MaxRefill.Microseconds()) {
		return 0, 0, false
	}
	return int64(q), int64(r), true
}

// Refilled returns how many whole units limit units per window make in d: 0
// before its beginning, and MaxInteger at most.
func Refilled(limit int64, window, d time.Duration) int64 {
	size := uint64(max(0, window.Microseconds()))
	if limit <= 0 || size == 0 || d <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(d.Microseconds()), uint64(limit))
	if hi >= size {
		return MaxInteger
	}
	units, _ := bits.Div64(hi, lo, size)
	return int64(min(units, MaxInteger)) //nolint:gosec // it is at most 2^53
}
