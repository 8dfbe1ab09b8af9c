package local

import (
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// Blind reports whether nothing can be said of a counter's share, so that none
// is given out: of a wallet unless the store has said what was left; and where
// the store was never reached, of a window or period that began before this
// Limiter, since a process before it may have spent its share of that. A bucket
// is never blind: it begins empty then.
func (l *Limiter) Blind(c *limit.Counter) bool {
	if c.Unlimited || c.Apart() || c.Cost <= 0 || c.Capacity() == 0 {
		return false
	}
	now := l.now()
	sh := l.shard(keyAt(c, now))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.entries[keyAt(c, now)]
	if e == nil {
		e = new(entry)
	}
	return l.blind(e, c, now)
}

// blind is Blind with the entry's lock held.
func (l *Limiter) blind(e *entry, c *limit.Counter, now time.Time) bool {
	switch {
	case e.known || e.begun && !e.over(now.UnixMicro()):
		return false
	case c.Wallet():
		return true
	case l.reached() || c.Algorithm.Bucket():
		return false
	}
	return began(c, now).Before(l.born)
}

// began is since when units count that are used at that time; of a calendar
// without an end, ever since.
func began(c *limit.Counter, now time.Time) time.Time {
	switch {
	case c.Renews():
		return c.Calendar.At(now).Start
	case c.Algorithm == limit.FixedWindow:
		w := c.Window.Microseconds()
		return time.UnixMicro(now.UnixMicro() / w * w)
	}
	return now.Add(-c.Window)
}
