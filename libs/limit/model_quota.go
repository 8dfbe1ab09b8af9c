package limit

import "time"

// quotaAt is the state of a renewing quota's period with what it has from the
// last one.
func (m *Model) quotaAt(c *Counter, s modelState, now int64) modelState {
	b := c.Calendar.At(c.Time(time.UnixMicro(now)))
	s.carried = 0
	if c.Rollover == 0 || b.Endless() {
		return s
	}
	if s.begun {
		s.carried = s.fixed
		return s
	}
	last := c.Calendar.At(b.Start.Add(-time.Second))
	old := m.counters[c.Key+":"+last.Name()]
	if old.consumed == 0 && (c.Since.IsZero() || !c.Since.Before(last.End)) {
		return s
	}
	// Carried units are spent first; only the period's own are carried.
	own := max(0, old.consumed-old.refunded-old.fixed)
	s.carried = min(c.Rollover, max(0, last.Prorate(c.Limit)-own))
	return s
}

// allowance is what a quota may use.
func (c *Counter) allowance(s modelState, now int64) int64 {
	if c.Wallet() {
		return c.Granted
	}
	if c.Limit == 0 {
		return 0
	}
	return c.Calendar.At(c.Time(time.UnixMicro(now))).Prorate(c.Limit) + s.carried
}

func (s *modelState) spent() int64 { return s.consumed - s.refunded + s.forfeited }

func (m *Model) takeQuota(c *Counter, s modelState, now int64) (modelState, bool) {
	if c.Renews() {
		s = m.quotaAt(c, s, now)
	}
	next, all := s, c.allowance(s, now)
	free := c.Unlimited || c.Force
	switch {
	case c.Cost < 0:
		next.refunded = min(s.refunded-c.Cost, s.consumed)
		return next, true
	case c.Cost == 0:
		return s, free || c.Wallet() || c.Limit > 0
	case free:
	case c.Overdraws() && s.spent() >= all:
		return s, false
	case !c.Overdraws() && s.spent()+c.Cost > all:
		return s, false
	}
	next.consumed = min(s.consumed+c.Cost, MaxInteger)
	if c.Renews() && c.Rollover > 0 && !next.begun {
		next.begun, next.fixed = true, s.carried
	}
	return next, true
}
