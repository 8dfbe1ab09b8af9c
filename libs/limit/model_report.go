package limit

import (
	"math/big"
	"time"
)

// report fills a state whose Key and Allowed are known.
func (c *Counter) report(st *State, s modelState, now int64) {
	s = c.asOf(s, now)
	st.Unlimited = c.Unlimited
	if c.Algorithm.Quota() {
		st.Consumed = s.count
	}
	if c.Unlimited {
		return
	}
	st.Limit = c.Limit
	st.Never = !st.Allowed && (c.Limit == 0 || c.Cost > c.Capacity())
	if c.Limit == 0 {
		return
	}
	waits := !st.Allowed && !st.Never
	if c.Algorithm == GCRA {
		c.reportGCRA(st, s, now, waits)
		return
	}
	end := s.end
	if c.Algorithm.Quota() {
		end = c.Calendar.At(time.UnixMicro(now)).End.UnixMicro()
	}
	st.Remaining = max(0, c.Limit-s.count)
	st.Reset = time.Duration(end-now) * time.Microsecond
	if waits {
		st.RetryAfter = st.Reset
	}
}

func (c *Counter) reportGCRA(st *State, s modelState, now int64, waits bool) {
	// n more units fit as soon as tat + n·T <= then + burst·T.
	waitFor := func(n int64) time.Duration {
		then := new(big.Rat).Add(s.tat, c.times(n))
		then.Sub(then, c.times(c.Burst)).Sub(then, micros(now))
		if then.Sign() <= 0 {
			return 0
		}
		return time.Duration(ceil(then)) * time.Microsecond
	}
	free := new(big.Rat).Add(micros(now), c.times(c.Burst))
	free.Sub(free, s.tat)
	if free.Sign() > 0 {
		units := free.Quo(free, c.times(1))
		st.Remaining = new(big.Int).Quo(units.Num(), units.Denom()).Int64()
	}
	if st.Remaining < c.Burst {
		st.Reset = waitFor(st.Remaining + 1)
	}
	if waits {
		st.RetryAfter = waitFor(c.Cost)
	}
}
