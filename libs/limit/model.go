package limit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Model is the reference implementation: in memory, and in exact rationals
// rather than in the script's integers, so that the two do not share mistakes.
// It keeps every counter for ever and is for tests and comparison. It is safe
// for concurrent use.
type Model struct {
	now func() time.Time

	mu       sync.Mutex
	counters map[string]modelState
}

// modelState is what one key holds; each algorithm uses its part. States are
// values: a changed one is a copy.
type modelState struct {
	tat    ratio // gcra: theoretical arrival time, µs
	tokens ratio // tokenBucket: at last
	last   int64 // tokenBucket: µs
	limit  int64 // gcra, tokenBucket: the limit it was charged by; 0 is never
	burst  int64 // tokenBucket: the burst it was charged by
	count  int64 // windows: in the running one
	past   int64 // slidingWindow: in the one before
	end    int64 // windows: of the running one, µs
	// quotas
	consumed, refunded, forfeited int64
	carried                       int64 // as it stands now
	fixed                         int64 // carried, as the first charge fixed it
	begun                         bool  // it did
}

// NewModel returns an empty Model; now is its clock, nil is time.Now.
func NewModel(now func() time.Time) *Model {
	if now == nil {
		now = time.Now
	}
	return &Model{now: now, counters: map[string]modelState{}}
}

var _ Store = (*Model)(nil)

// Decide implements Store.
func (m *Model) Decide(ctx context.Context, counters []Counter) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	var enforced, apart []int
	for i := range counters {
		if err := counters[i].Check(); err != nil {
			return Decision{}, err
		}
		if counters[i].Apart() {
			apart = append(apart, i)
		} else {
			enforced = append(enforced, i)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	d := Decision{Now: time.UnixMicro(now).UTC(), States: make([]State, len(counters))}
	d.Allowed = m.charge(counters, enforced, d.States, now)
	for _, i := range apart {
		m.charge(counters, []int{i}, d.States, now)
	}
	return d, nil
}

// charge charges all of some counters or none, and fills their states.
func (m *Model) charge(counters []Counter, which []int, states []State, now int64) (allowed bool) {
	type was struct {
		key   string
		state modelState
	}
	var before []was
	allowed = true
	for _, i := range which {
		aged := counters[i].aged(now)
		c, key := &aged, aged.modelKey(now)
		s, ok := m.take(c, now)
		if ok && c.Cost != 0 && !c.idle(m.counters[key], s, now) {
			before = append(before, was{key, m.counters[key]})
			m.counters[key] = s
		}
		states[i] = State{Key: key, Allowed: ok}
		allowed = allowed && ok
	}
	if !allowed {
		for _, w := range slices.Backward(before) {
			m.counters[w.key] = w.state
		}
	}
	for _, i := range which {
		m.report(&counters[i], &states[i], now)
	}
	return allowed
}

// idle reports that a charge changed nothing, and so leaves no trace, not even
// of when it was.
func (c *Counter) idle(was, is modelState, now int64) bool {
	switch {
	case c.Algorithm.Quota():
		return false
	case c.Unlimited || c.Limit == 0 && c.Algorithm.Bucket():
		return true
	case !c.Algorithm.Bucket():
		was = c.windowAt(was, now)
		return was.count == is.count && (was.past == is.past || c.Algorithm == FixedWindow)
	case c.Cost > 0:
		return false
	case c.Algorithm == GCRA:
		return is.tat.cmp(integer(now)) <= 0 && was.tat.cmp(integer(now)) <= 0
	}
	own := Counter{Algorithm: TokenBucket, Window: c.Window, Limit: was.limit, Burst: was.burst}
	return is.tokens.cmp(integer(c.Burst)) >= 0 &&
		(was.limit == 0 || own.bucketAt(was, now).tokens.cmp(integer(was.burst)) >= 0)
}

func (c *Counter) modelKey(now int64) string {
	if c.Renews() {
		return c.Key + ":" + c.Calendar.At(c.Time(time.UnixMicro(now))).Name()
	}
	return c.Key
}

// take returns the counter's state with the cost taken, or as it is and false.
func (m *Model) take(c *Counter, now int64) (modelState, bool) {
	s := m.counters[c.modelKey(now)]
	switch {
	case c.Algorithm.Quota():
		return m.takeQuota(c, s, now)
	case c.Unlimited:
		return s, true
	case c.Algorithm.Bucket():
		return c.takeBucket(s, now)
	}
	return c.takeWindow(s, now)
}

func (c *Counter) takeBucket(s modelState, now int64) (modelState, bool) {
	if c.Limit == 0 {
		return s, c.Force || c.Cost < 0
	}
	s = c.bucketAt(s, now)
	next, ok := s, true
	if c.Algorithm == TokenBucket {
		next.tokens = s.tokens.minus(integer(c.Cost))
		ok = next.tokens.sign() >= 0
		next.tokens = lesser(next.tokens, integer(c.Burst))
	} else {
		next.tat = s.tat.plus(c.refillTime(c.Cost))
		ok = next.tat.cmp(integer(now).plus(c.refillTime(c.Burst))) <= 0
		if next.tat.cmp(integer(now)) < 0 {
			next.tat = integer(now)
		}
	}
	if c.Cost > 0 && !c.Force && !ok {
		return s, false
	}
	return next, true
}

// aged is a counter with what a refund of a bucket gives back so long after: a
// charge keeps it from being full by no more than its refill time, less what has
// passed of that.
func (c *Counter) aged(now int64) Counter {
	aged := *c
	if c.Cost >= 0 || !c.Algorithm.Bucket() || c.At.IsZero() || c.Limit == 0 {
		return aged
	}
	passed := max(0, now-c.At.UnixMicro())
	aged.Cost = -max(0, integer(-c.Cost).minus(quotient(passed, c.Limit, c.Window.Microseconds())).ceil())
	return aged
}

// bucketAt brings a state to the present and to the counter's numbers.
func (c *Counter) bucketAt(s modelState, now int64) modelState {
	if c.Algorithm == TokenBucket {
		if s.limit == 0 {
			s.tokens, s.burst = integer(c.Burst), c.Burst
		} else {
			s.tokens = s.tokens.plus(quotient(s.limit, now-s.last, c.Window.Microseconds()))
			if s.tokens.cmp(integer(s.burst)) >= 0 {
				s.tokens = integer(c.Burst) // what is full stays full
			}
			s.tokens = lesser(s.tokens, integer(c.Burst))
		}
		s.last, s.limit, s.burst = now, c.Limit, c.Burst
		return s
	}
	if s.tat.cmp(integer(now)) < 0 {
		s.tat = integer(now)
	} else if s.limit != c.Limit {
		s.tat = integer(s.tat.ceil())
	}
	s.limit = c.Limit
	return s
}

// refillTime returns n·T in µs, T being window ÷ limit.
func (c *Counter) refillTime(n int64) ratio { return quotient(c.Window.Microseconds(), n, c.Limit) }
