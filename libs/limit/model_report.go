package limit

import "time"

// report fills a state whose Key and Allowed are known.
func (m *Model) report(c *Counter, st *State, now int64) {
	s := m.counters[st.Key]
	st.Unlimited, st.Shadow = c.Unlimited, c.Shadow
	if c.Algorithm.Quota() {
		m.reportQuota(c, st, s, now)
		return
	}
	if c.Unlimited {
		return
	}
	st.Limit = c.Limit
	st.Never = !st.Allowed && (c.Limit == 0 || c.Cost > c.Capacity())
	waits := !st.Allowed && !st.Never
	switch {
	case c.Limit == 0:
	case c.Algorithm.Bucket():
		c.reportBucket(st, c.bucketAt(s, now), now, waits)
	default:
		c.reportWindow(st, c.windowAt(s, now), now, waits)
	}
}

func (m *Model) reportQuota(c *Counter, st *State, s modelState, now int64) {
	if c.Renews() {
		s = m.quotaAt(c, s, now)
	}
	st.Consumed, st.Refunded, st.Forfeited, st.Carried = s.consumed, s.refunded, s.forfeited, s.carried
	if c.Unlimited {
		return
	}
	st.Limit = c.allowance(s, now)
	st.Remaining = max(0, st.Limit-s.spent())
	b := c.Calendar.At(c.Time(time.UnixMicro(now)))
	switch {
	case c.Wallet():
		st.Never = !st.Allowed
		return
	case c.Limit == 0, b.Endless():
		st.Never = !st.Allowed
		return
	case !st.Allowed:
		st.Never = !c.Overdraws() && c.Cost > c.Limit+c.Rollover
	}
	st.Reset = max(0, b.End.Sub(time.UnixMicro(now)))
	if !st.Allowed && !st.Never {
		st.RetryAfter = st.Reset
	}
}

func (c *Counter) reportWindow(st *State, s modelState, now int64, waits bool) {
	used := c.used(s, now)
	st.Remaining = max(0, c.Limit-used)
	if c.Algorithm == FixedWindow {
		st.Reset = time.Duration(s.end-now) * time.Microsecond
		if waits {
			st.RetryAfter = st.Reset
		}
		return
	}
	if used > 0 {
		st.Reset = c.until(s, now, c.Limit-st.Remaining-1)
	}
	if waits {
		st.RetryAfter = c.until(s, now, c.Limit-c.Cost)
	}
}

func (c *Counter) reportBucket(st *State, s modelState, now int64, waits bool) {
	// free is how much time is left, in which n more units need n·T.
	var free ratio
	if c.Algorithm == TokenBucket {
		free = s.tokens.times(c.Window.Microseconds(), c.Limit)
	} else {
		free = integer(now).plus(c.refillTime(c.Burst)).minus(s.tat)
	}
	waitFor := func(n int64) time.Duration {
		return time.Duration(max(0, c.refillTime(n).minus(free).ceil())) * time.Microsecond
	}
	if free.sign() > 0 {
		st.Remaining = free.times(c.Limit, c.Window.Microseconds()).floor()
	}
	if st.Remaining < c.Burst {
		st.Reset = waitFor(st.Remaining + 1)
	}
	if waits {
		st.RetryAfter = waitFor(c.Cost)
	}
}
