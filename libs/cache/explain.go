package cache

import (
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/cache/xfetch"
)

// Method is a way to keep a key's expiry from becoming a stampede. The lock and the join are always on: a Method says
// what must be beside them.
type Method uint8

// Methods.
const (
	// UseLock: readers of an expired value wait for its one load.
	UseLock Method = iota + 1
	// UseXFetch: some reader refreshes before the expiry (Options.Beta).
	UseXFetch
	// UseSWR: readers get the stale value meanwhile (Options.StaleWhileRevalidate).
	UseSWR
)

// String is the method's name.
func (m Method) String() string {
	switch m {
	case UseLock:
		return "lock"
	case UseXFetch:
		return "xfetch"
	case UseSWR:
		return "stale-while-revalidate"
	}
	return "unknown"
}

// Advice is what a key's traffic recommends for its family.
type Advice struct {
	Method Method
	// Why is one sentence with the numbers that decided.
	Why string
	// Rate is reads a second of this process; Delta the mean load time; Budget the staleness allowed.
	Rate   float64
	Delta  time.Duration
	Budget time.Duration
	// Waiters is how many readers of this process arrive during one load: the stampede, without protection.
	Waiters float64
	// EarlyBy is how long before expiry XFetch's first refresh comes on average (beta, or 1 while it is off).
	EarlyBy time.Duration
}

// Explain says which method the key's family should use, from what this process has seen of the key.
func (c *Cache[V]) Explain(key string) Advice {
	s := c.state(key)
	delta := s.meanDelta()
	if it := c.peek(key); it != nil && it.delta > 0 {
		delta = it.delta
	}
	return Advise(s.readRate(c.clock()), delta, c.opts.StaleWhileRevalidate, c.opts.TTL, or(c.opts.Beta, 1))
}

// Advise is Explain for numbers from elsewhere: rate is reads a second of one process, budget how long values may be
// stale. Readers may only be spared the wait by something to serve meanwhile: a stale value, if the budget
// covers a load, or an early refresh that ends before the expiry, which takes readers enough to draw it.
func Advise(rate float64, delta, budget, ttl time.Duration, beta float64) Advice {
	a := Advice{Rate: rate, Delta: delta, Budget: budget, Waiters: rate * delta.Seconds(), EarlyBy: xfetch.LeadTime(rate, delta, beta)}
	switch {
	case delta <= 0 || rate <= 0:
		a.Method, a.Why = UseLock, "no load or no read seen yet: the lock is right whatever comes"
	case budget >= delta:
		a.Method = UseSWR
		a.Why = fmt.Sprintf("a load takes %s and values may be stale for %s: no reader need ever wait", round(delta), budget)
	case a.Waiters < 1:
		a.Method = UseLock
		a.Why = fmt.Sprintf("%.2f readers arrive during a load of %s: hardly anyone waits", a.Waiters, round(delta))
	case a.EarlyBy >= ttl/2:
		a.Method = UseLock
		a.Why = fmt.Sprintf("xfetch would refresh %s before the end of a ttl of %s, most of the time: a load of %s is too slow for it", round(a.EarlyBy), ttl, round(delta))
	case a.EarlyBy < delta:
		a.Method = UseLock
		a.Why = fmt.Sprintf("xfetch would refresh only %s before expiry, later than the %s a load takes: raise beta, or let readers wait", round(a.EarlyBy), round(delta))
	default:
		a.Method = UseXFetch
		a.Why = fmt.Sprintf("no staleness for the %s of a load is allowed, and %.0f reads a second draw a refresh %s before expiry: in time", round(delta), rate, round(a.EarlyBy))
	}
	return a
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}
