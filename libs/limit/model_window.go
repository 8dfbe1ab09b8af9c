package limit

import "time"

// windowAt brings a state to the present.
func (c *Counter) windowAt(s modelState, now int64) modelState {
	w := c.Window.Microseconds()
	if s.end > now {
		return s
	}
	past := int64(0)
	if s.end+w > now {
		past = s.count
	}
	return modelState{past: past, end: (now/w + 1) * w}
}

func (c *Counter) takeWindow(s modelState, now int64) (modelState, bool) {
	s = c.windowAt(s, now)
	next := s
	switch {
	case c.Cost == 0 && !c.Force:
		return s, c.Limit > 0
	case c.Cost > 0 && !c.Force && (c.Limit == 0 || c.used(s, now)+c.Cost > c.Limit):
		return s, false
	}
	at, w := s.end, c.Window.Microseconds()
	if t := c.Time(time.Time{}); !t.IsZero() {
		at = t.UnixMicro()
	}
	sliding := c.Algorithm == SlidingWindow
	switch {
	case at >= s.end-w:
		next.count = s.count + c.Cost
		if next.count < 0 {
			if sliding && at == s.end {
				next.past = max(0, s.past+next.count)
			}
			next.count = 0
		}
	case sliding && at >= s.end-2*w:
		next.past = max(0, s.past+c.Cost)
	}
	next.count, next.past = min(next.count, MaxInteger), min(next.past, MaxInteger)
	return next, true
}

// used is what counts of a window: of a sliding one with the part of the last
// that is still in sight, rounded up.
func (c *Counter) used(s modelState, now int64) int64 {
	if c.Algorithm == FixedWindow {
		return s.count
	}
	w := c.Window.Microseconds()
	return s.count + quotient(s.past, min(s.end-now, w), w).ceil()
}

// usedIn is used if nothing is added for some µs.
func (c *Counter) usedIn(s modelState, now, d int64) int64 {
	return c.used(c.windowAt(s, now+d), now+d)
}

// until is the first µs from now after which no more than n are used.
func (c *Counter) until(s modelState, now, n int64) time.Duration {
	lo, hi := int64(0), s.end-now+c.Window.Microseconds()
	for lo < hi { // what is used never grows by itself
		mid := (lo + hi) / 2
		if c.usedIn(s, now, mid) <= n {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return time.Duration(lo) * time.Microsecond
}
