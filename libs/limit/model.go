package limit

import (
	"context"
	"maps"
	"math/big"
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
	tat   *big.Rat // gcra: theoretical arrival time, µs
	limit int64    // gcra: the limit tat was computed with
	count int64    // fixedWindow, quota
	end   int64    // fixedWindow: µs
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
	for i := range counters {
		if err := counters[i].Check(); err != nil {
			return Decision{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMicro()
	d := Decision{Allowed: true, Now: time.UnixMicro(now).UTC(), States: make([]State, len(counters))}
	after := maps.Clone(m.counters)
	for i := range counters {
		key := modelKey(&counters[i], d.Now)
		s, ok := counters[i].take(after[key], now)
		if ok && counters[i].leavesTrace() {
			after[key] = s
		}
		d.States[i] = State{Key: key, Allowed: ok}
		d.Allowed = d.Allowed && ok
	}
	if d.Allowed {
		m.counters = after
	}
	for i := range counters {
		st := &d.States[i]
		counters[i].report(st, m.counters[st.Key], now)
	}
	return d, nil
}

func modelKey(c *Counter, now time.Time) string {
	if c.Algorithm.Quota() {
		return c.Key + ":" + c.Calendar.At(now).Name()
	}
	return c.Key
}

// leavesTrace reports whether a charge is kept: a look is not, not even when it
// was, nor what an unlimited rate would count.
func (c *Counter) leavesTrace() bool {
	return c.Cost > 0 && (!c.Unlimited || c.Algorithm.Quota())
}

// take returns the state with the cost taken, or s and false.
func (c *Counter) take(s modelState, now int64) (modelState, bool) {
	s = c.asOf(s, now)
	next := s
	switch {
	case c.Unlimited && !c.Algorithm.Quota():
		return s, true
	case c.Unlimited:
		next.count = min(s.count+c.Cost, MaxInteger)
		return next, true
	case c.Limit == 0:
		return s, false
	case c.Cost == 0:
		return s, true
	case c.Algorithm == GCRA:
		next.tat = new(big.Rat).Add(s.tat, c.times(c.Cost))
		latest := new(big.Rat).Add(micros(now), c.times(c.Burst))
		if next.tat.Cmp(latest) > 0 {
			return s, false
		}
		return next, true
	}
	next.count = s.count + c.Cost
	if next.count > c.Limit {
		return s, false
	}
	return next, true
}

// asOf brings a state to the present: what has passed is forgotten.
func (c *Counter) asOf(s modelState, now int64) modelState {
	switch {
	case c.Algorithm == GCRA && !c.Unlimited && c.Limit > 0:
		if s.tat == nil || s.tat.Cmp(micros(now)) < 0 {
			s.tat = micros(now)
		} else if s.limit != c.Limit {
			s.tat = micros(ceil(s.tat))
		}
		s.limit = c.Limit
	case c.Algorithm == FixedWindow && s.end <= now:
		w := c.Window.Microseconds()
		s.count, s.end = 0, (now/w+1)*w
	}
	return s
}

// times returns n·T in µs, T being window ÷ limit.
func (c *Counter) times(n int64) *big.Rat {
	t := big.NewRat(c.Window.Microseconds(), c.Limit)
	return t.Mul(t, new(big.Rat).SetInt64(n))
}

func micros(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func ceil(r *big.Rat) int64 {
	q, rem := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rem.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}
