package share

import (
	"math"
	"math/bits"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/services/gateway/internal/membership"
)

// soon is when to ask again where the store, once it is back, may let pass what
// is above this gateway's share.
const soon = 5 * time.Second

// entry is what is known of a counter and what is left of this gateway's share.
// Times are µs since the epoch.
type entry struct {
	// remaining is what the store said was left when it was observed; until says
	// how long that means anything, 0 is for ever.
	remaining, observed, until int64
	known                      bool

	// begun: a share is being spent. left of it are units, below zero after an
	// overdraft; end is when it ends, 0 never; anchor when a bucket was refilled.
	// whole is the limit that a window's or quota's share was made by; since is
	// when the share began.
	begun                           bool
	left, end, anchor, whole, since int64
}

// over reports a share whose window has ended.
func (e *entry) over(now int64) bool { return e.begun && e.end != 0 && now >= e.end }

// spent reports whether the store itself has said that less is left than is
// asked for: its return will not help.
func (e *entry) spent(c *limit.Counter, now int64) bool {
	least := c.Cost
	if c.Overdraws() {
		least = 1
	}
	return e.known && (e.until == 0 || now < e.until) && e.remaining < least
}

// bring makes the share that of now: begins it, or begins the next.
func (e *entry) bring(c *limit.Counter, at time.Time, position membership.Position) {
	now := at.UnixMicro()
	if !e.begun || e.over(now) {
		e.begin(c, at, position)
	}
	if c.Algorithm.Bucket() {
		e.refill(c, now, position)
	}
	e.follow(c, at, position)
	if most := position.Share(c.Capacity()); c.Algorithm.Bucket() && e.left > most {
		e.left = most
	}
}

// follow lets a running share of a window or quota grow and shrink with its
// limit: a limit that is raised in the middle of an outage, or between two,
// gives this gateway its share of the difference, and no more.
func (e *entry) follow(c *limit.Counter, at time.Time, position membership.Position) {
	if c.Algorithm.Bucket() || c.Wallet() {
		return // a bucket refills by its limit anyway; of a wallet only the store knows
	}
	if whole := limitAt(c, at); whole != e.whole {
		e.left += position.Share(whole) - position.Share(e.whole)
		e.whole = whole
	}
}

// limitAt is the whole limit in the period of that time.
func limitAt(c *limit.Counter, at time.Time) int64 {
	if c.Renews() {
		return c.Calendar.At(at).Prorate(c.Capacity())
	}
	return c.Capacity()
}

// begin starts a share of what was last known to remain, of the whole limit
// where nothing is known.
func (e *entry) begin(c *limit.Counter, at time.Time, position membership.Position) {
	now := at.UnixMicro()
	// What was seen before the last share was spent says nothing of what is left.
	fresh := !e.begun || e.observed >= e.end
	whole, known := limitAt(c, at), fresh && e.known && (e.until == 0 || now < e.until)
	e.whole = whole
	switch {
	case known:
		// What the store said contains units that were carried over, too.
		if whole = min(whole, e.remaining); c.Rollover > 0 {
			whole = e.remaining
		}
	case c.Wallet():
		whole = 0
	}
	e.begun, e.left, e.end, e.anchor, e.since = true, position.Share(max(0, whole)), 0, now, now
	switch {
	case c.Algorithm.Bucket():
		if known {
			e.anchor = e.observed
		}
	case c.Algorithm == limit.FixedWindow:
		w := c.Window.Microseconds()
		e.end = (now/w + 1) * w
	case c.Algorithm == limit.SlidingWindow:
		e.end = now + c.Window.Microseconds()
	}
	// A quota's key names its period: its share ends with the key.
}

// refill gives a bucket the units of the time since its anchor: Limit of them
// in as many windows as gateways live. The anchor moves by what they took,
// rounded up: a share is rather too small than too large.
func (e *entry) refill(c *limit.Counter, now int64, position membership.Position) {
	if now <= e.anchor || c.Limit <= 0 {
		return
	}
	each := uint64(c.Window.Microseconds()) * uint64(max(1, position.Live))
	hi, lo := bits.Mul64(uint64(now-e.anchor), uint64(c.Limit))
	if hi >= each {
		e.left, e.anchor = math.MaxInt64, now
		return
	}
	units, _ := bits.Div64(hi, lo, each)
	most := uint64(position.Share(c.Burst))
	if units >= most || e.left >= int64(most-units) {
		e.left, e.anchor = int64(most), now
		return
	}
	e.left += int64(units)
	e.anchor += takes(units, each, uint64(c.Limit))
}

// takes is how many µs units take at limit units per each µs, rounded up.
func takes(units, each, limit uint64) int64 {
	hi, lo := bits.Mul64(units, each)
	if hi >= limit {
		return math.MaxInt64
	}
	q, rem := bits.Div64(hi, lo, limit)
	if rem > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64))
}

// times fills Reset and RetryAfter: not what the share alone would have it wait
// for where the store may let pass more, and one second where only a new share,
// of more or fewer gateways, would help.
func (e *entry) times(c *limit.Counter, st *limit.State, now int64, position membership.Position) {
	switch {
	case c.Algorithm.Bucket() && c.Limit > 0:
		each := uint64(c.Window.Microseconds()) * uint64(max(1, position.Live))
		st.Reset = time.Duration(max(0, e.anchor+takes(1, each, uint64(c.Limit))-now)) * time.Microsecond
		if missing := c.Cost - e.left; missing > 0 && c.Cost <= position.Share(c.Burst) {
			st.RetryAfter = time.Duration(max(0, e.anchor+takes(uint64(missing), each, uint64(c.Limit))-now)) * time.Microsecond
		}
	case c.Renews():
		if b := c.Calendar.At(time.UnixMicro(now)); !b.Endless() {
			st.Reset = time.Duration(b.End.UnixMicro()-now) * time.Microsecond
		}
		st.RetryAfter = st.Reset
	case e.end > 0:
		st.Reset = time.Duration(e.end-now) * time.Microsecond
		st.RetryAfter = st.Reset
	}
	switch {
	case st.Allowed || st.Never:
		st.RetryAfter = 0
	case st.RetryAfter <= 0:
		st.RetryAfter = time.Second
	case !e.spent(c, now):
		st.RetryAfter = min(st.RetryAfter, soon)
	}
}
