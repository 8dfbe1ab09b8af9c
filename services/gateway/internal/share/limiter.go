package share

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/services/gateway/internal/membership"
)

// DefaultCounters is how many counters are remembered where Options do not say.
const DefaultCounters = 1 << 16

const shards = 64

// Options of New.
type Options struct {
	// Position is this gateway among those that live; nil is alone.
	Position func() membership.Position
	// Reached says whether this process has reached the store, and the store has
	// been charged what the process before it let pass; nil is that it has.
	Reached func() bool
	// Counters is the most that are remembered, about 150 B each; 0 is
	// DefaultCounters.
	Counters int
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Limiter is safe for concurrent use.
type Limiter struct {
	position func() membership.Position
	reached  func() bool
	now      func() time.Time
	most     int // a shard
	seed     maphash.Seed

	// deciding makes decisions all or nothing; Observe does not take it.
	deciding sync.Mutex
	shards   [shards]shard
}

type shard struct {
	mu      sync.Mutex
	entries map[string]*entry
}

// New returns a Limiter that has seen nothing.
func New(o Options) *Limiter {
	if o.Position == nil {
		o.Position = func() membership.Position { return membership.Position{Live: 1} }
	}
	if o.Reached == nil {
		o.Reached = func() bool { return true }
	}
	if o.Counters <= 0 {
		o.Counters = DefaultCounters
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Limiter{
		position: o.Position, reached: o.Reached, now: o.Now,
		most: max(1, o.Counters/shards), seed: maphash.MakeSeed(),
	}
	for i := range l.shards {
		l.shards[i].entries = map[string]*entry{}
	}
	return l
}

// Observe remembers what the store said was left of a counter.
func (l *Limiter) Observe(c *limit.Counter, st *limit.State) {
	if c.Unlimited || c.Apart() {
		return
	}
	now, position := l.now().UnixMicro(), l.position()
	sh, e := l.lock(st.Key, now)
	defer sh.mu.Unlock()
	e.remaining, e.known, e.observed = st.Remaining, true, now
	switch {
	case c.Algorithm == limit.FixedWindow && st.Reset > 0:
		e.until = now + st.Reset.Microseconds()
	case c.Algorithm.Quota():
		e.until = 0 // as long as its key names the period
	default:
		e.until = now + c.Window.Microseconds()
	}
	if e.begun && !e.over(now) {
		e.left = min(e.left, position.Share(st.Remaining))
	}
}

// Decide charges all counters' shares or none; shadow and forced counters are
// not looked at. The states tell of the share, with the counter's own limit.
// Where it reports false a share is unknown, and nothing is charged: of a wallet
// of which the store has not said what is left, and, until the store is reached,
// of every counter, since the process before this one may have spent its share.
func (l *Limiter) Decide(counters []limit.Counter) (limit.Decision, bool) {
	now := l.now()
	d := limit.Decision{Allowed: true, Now: now.UTC(), States: make([]limit.State, len(counters))}
	position := l.position()
	l.deciding.Lock()
	defer l.deciding.Unlock()
	for i := range counters {
		st, known := l.judge(counters, i, d.States, now, position)
		if !known {
			return limit.Decision{}, false
		}
		d.States[i] = st
		d.Allowed = d.Allowed && st.Allowed
	}
	if !d.Allowed {
		return d, true
	}
	for i := range counters {
		c, st := &counters[i], &d.States[i]
		if c.Unlimited || c.Apart() || c.Cost == 0 {
			continue
		}
		sh, e := l.lock(st.Key, now.UnixMicro())
		e.left -= c.Cost
		st.Remaining = max(0, e.left)
		sh.mu.Unlock()
	}
	return d, true
}

// GiveBack gives the shares back what a decision that passed has charged them,
// as if it had not been asked for. Of a share that has ended meanwhile nothing is
// left to give back to.
func (l *Limiter) GiveBack(counters []limit.Counter, d *limit.Decision) {
	now := l.now().UnixMicro()
	for i := range counters {
		c := &counters[i]
		if c.Unlimited || c.Apart() || c.Cost == 0 {
			continue
		}
		sh, e := l.lock(d.States[i].Key, now)
		if e.begun && !e.over(now) && e.since <= d.Now.UnixMicro() {
			e.left += c.Cost
		}
		sh.mu.Unlock()
	}
}

// judge says whether the i-th counter's share holds its cost, beside what those
// before it with the same key are about to take; false where it is unknown.
func (l *Limiter) judge(counters []limit.Counter, i int, before []limit.State, now time.Time, position membership.Position) (limit.State, bool) {
	c := &counters[i]
	st := limit.State{Key: keyAt(c, now), Allowed: true, Unlimited: c.Unlimited, Shadow: c.Shadow}
	if c.Unlimited || c.Apart() {
		return st, true
	}
	st.Limit = c.Limit
	if c.Wallet() {
		st.Limit = c.Granted
	}
	sh, e := l.lock(st.Key, now.UnixMicro())
	defer sh.mu.Unlock()
	if c.Cost > 0 && c.Capacity() > 0 && l.unknown(e, c, now.UnixMicro()) {
		return st, false
	}
	e.bring(c, now, position)
	left := e.left
	for j := range i {
		if before[j].Key == st.Key && !counters[j].Unlimited && !counters[j].Apart() {
			left -= counters[j].Cost
		}
	}
	st.Remaining = max(0, left)
	switch {
	case c.Cost < 0:
	case c.Capacity() == 0:
		st.Allowed = false
	case c.Cost == 0:
	case c.Overdraws():
		st.Allowed = left > 0
	default:
		st.Allowed = c.Cost <= left
	}
	if !st.Allowed {
		st.Never = c.Capacity() == 0 || c.Cost > c.Capacity() && !c.Overdraws() || c.Wallet() && e.spent(c, now.UnixMicro())
	}
	e.times(c, &st, now.UnixMicro(), position)
	return st, true
}

// unknown reports a counter that the store has said nothing of, and none of
// whose shares is in use, where that says nothing of what is left.
func (l *Limiter) unknown(e *entry, c *limit.Counter, now int64) bool {
	return !e.known && (!e.begun || e.over(now)) && (c.Wallet() || !l.reached())
}

// lock locks the key's shard, and returns it with the key's entry, made where it
// is missing.
func (l *Limiter) lock(key string, now int64) (*shard, *entry) {
	s := &l.shards[maphash.String(l.seed, key)%shards]
	s.mu.Lock()
	e := s.entries[key]
	if e == nil {
		if len(s.entries) >= l.most {
			s.evict(now)
		}
		e = new(entry)
		s.entries[key] = e
	}
	return s, e
}

// evict makes room: of a few entries, one that is over or holds no share in
// use; where there is none, any.
func (s *shard) evict(now int64) {
	const looks = 8
	victim, n := "", 0
	for key, e := range s.entries {
		if n++; victim == "" || !e.begun || e.over(now) {
			victim = key
		}
		if !e.begun || e.over(now) || n == looks {
			break
		}
	}
	delete(s.entries, victim)
}

// keyAt is the counter's key as states name it.
func keyAt(c *limit.Counter, now time.Time) string {
	if c.Renews() {
		return c.Key + ":" + c.Calendar.At(now).Name()
	}
	return c.Key
}
