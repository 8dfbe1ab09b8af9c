package state

import (
	"math/bits"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// span is a time: whole microseconds and rem/limit of one more, 0 <= rem < limit.
type span struct{ micros, rem int64 }

func (s span) minus(o span, limit int64) span {
	d := span{s.micros - o.micros, s.rem - o.rem}
	if d.rem < 0 {
		d.micros, d.rem = d.micros-1, d.rem+limit
	}
	return d
}

func emission(n *limit.Counter, units int64) span {
	micros, rem, _ := limit.Emission(n.Limit, n.Window, units)
	return span{micros, rem}
}

// fillBucket: the counter has free = burst·T − (TAT − now) left, T being window
// ÷ limit; whole units of T in it remain, and the others come as time passes.
func fillBucket(st *limit.State, n *limit.Counter, now, tat, rem int64) {
	free := emission(n, n.Burst).minus(span{tat - now, rem}, n.Limit)
	if free.micros >= 0 {
		// free × limit ÷ window in 128 bits; it is at most Burst, so it fits.
		hi, lo := bits.Mul64(uint64(free.micros), uint64(n.Limit))
		lo, carry := bits.Add64(lo, uint64(free.rem), 0)
		units, _ := bits.Div64(hi+carry, lo, uint64(n.Window.Microseconds()))
		st.Remaining = int64(units)
	}
	if st.Remaining < n.Burst {
		st.Reset = wait(free, emission(n, st.Remaining+1), n.Limit)
	}
	if !st.Allowed && !st.Never {
		st.RetryAfter = wait(free, emission(n, n.Cost), n.Limit)
	}
}

// wait is the time until free has grown to need, rounded up to a microsecond.
func wait(free, need span, limit int64) time.Duration {
	d := need.minus(free, limit)
	if d.rem > 0 {
		d.micros++
	}
	return time.Duration(max(0, d.micros)) * time.Microsecond
}
