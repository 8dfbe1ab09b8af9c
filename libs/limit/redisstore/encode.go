package redisstore

import (
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

// Codes of the script.
const (
	codeGCRA     = 1
	codeBucket   = 2
	codeFixed    = 3
	codeSliding  = 4
	codeQuota    = 5
	codeRollover = 6
	codeWallet   = 7
	codeNever    = 8
	codeGuard    = 9
)

// kindInteger is a key that holds a whole number; those of rates are of the
// kind their code says.
const kindInteger = 5

// Suffixes of a quota's keys.
const (
	suffixConsumed  = ":c"
	suffixRefunded  = ":r"
	suffixForfeited = ":f"
	suffixCarried   = ":o"
)

// keepPeriod is how long a period's keys outlive it, for late refunds.
const keepPeriod = 72 * time.Hour

// isFree reports a rate that is neither judged nor counted: an unlimited one,
// and of a limit of 0 what is given back or forced. Unlimited quotas go on
// counting what is sold.
func isFree(c *limit.Counter) bool {
	if c.Algorithm.Quota() {
		return false
	}
	return c.Unlimited || c.Algorithm.Bucket() && c.Limit == 0 && (c.Force || c.Cost < 0)
}

func needsRedis(counters []limit.Counter) bool {
	for i := range counters {
		if !isFree(&counters[i]) {
			return true
		}
	}
	return false
}

// begin starts a group; its counters follow, then end.
func (p *part) begin(apart bool) {
	p.groups = append(p.groups, group{from: len(p.counters), apart: apart})
	p.deadlines = append(p.deadlines, len(p.body))
	p.numbers(0, 0)
}

// end writes the group's length, negative where a key is named twice in it.
func (p *part) end(repeated bool) {
	p.groups[len(p.groups)-1].to = len(p.counters)
	start := p.deadlines[len(p.deadlines)-1]
	length := int64(len(p.body)-start)/8 - 2
	if repeated {
		length = -length
	}
	put(p.body, start+8, length)
}

// fromBelow has a guard pass from any number below the one it becomes.
const fromBelow = -1

// guard has the group take place only where the key's number is the one it goes on
// from, and becomes the other. It returns the key's place among the part's, and
// whether the key was named before.
func (p *part) guard(key string, from, to int64) (at int, repeated bool) {
	p.groups[len(p.groups)-1].guards++
	p.number(codeGuard)
	repeated = p.key(key, kindInteger)
	p.numbers(from, to)
	return p.keyAt(p.places[len(p.places)-1]), repeated
}

// add lays out a counter at a time; it reports whether its key was named
// before in this part. index is its place in the decision.
func (p *part) add(prefix string, c *limit.Counter, index int, now time.Time) (repeated bool) {
	p.counters = append(p.counters, *c)
	p.index = append(p.index, index)
	p.bounds = append(p.bounds, period.Bounds{})
	p.totals = append(p.totals, totalsAt{})
	key := prefix + c.Key
	capacity := c.Capacity()
	if c.Unlimited || c.Force {
		capacity = -1
	}
	p.quotas = p.quotas || c.Algorithm.Quota() && c.Cost != 0
	p.marked = p.marked || c.Algorithm.Quota()
	switch {
	case c.Wallet():
		return p.wallet(key, c, capacity)
	case c.Algorithm.Quota():
		return p.quota(key, c, capacity, now)
	case c.Algorithm.Bucket():
		return p.bucket(key, c, capacity)
	}
	code := int64(codeFixed)
	if c.Algorithm == limit.SlidingWindow {
		code = codeSliding
	}
	p.number(code)
	repeated = p.key(key, byte(code))
	p.numbers(c.Cost, capacity, c.Window.Microseconds(), usedAt(c))
	return repeated
}

// usedAt is Counter.At where it counts, µs, else 0.
func usedAt(c *limit.Counter) int64 {
	if t := c.Time(time.Time{}); !t.IsZero() {
		return t.UnixMicro()
	}
	return 0
}

func (p *part) bucket(key string, c *limit.Counter, capacity int64) (repeated bool) {
	if c.Limit == 0 {
		p.number(codeNever)
		p.key(key, codeGCRA) // a call needs a key; this one is not looked at
		p.number(c.Cost)
		return false
	}
	code := int64(codeGCRA)
	if c.Algorithm == limit.TokenBucket {
		code = codeBucket
	}
	take, units := c.Cost, c.Cost
	switch {
	case take < 0:
		units = c.GivesBack(p.clock.guess())
		take = -units
	case !c.Force:
		// A cost above burst is denied by capacity; its time may be too long to
		// be exact, and does not matter.
		units = min(take, c.Burst)
	}
	burst, burstRem, _ := limit.Emission(c.Limit, c.Window, c.Burst)
	cost, costRem, ok := limit.Emission(c.Limit, c.Window, units)
	if !ok {
		cost, costRem = limit.MaxRefill.Microseconds(), 0
	}
	p.number(code)
	repeated = p.key(key, byte(code))
	p.numbers(take, capacity, c.Limit, burst, burstRem, cost, costRem)
	if code == codeBucket {
		p.numbers(c.Window.Microseconds(), c.Burst)
	}
	return repeated
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

func (p *part) quota(key string, c *limit.Counter, capacity int64, now time.Time) (repeated bool) {
	at := c.Time(now)
	b := c.Calendar.At(at)
	p.bounds[len(p.bounds)-1] = b
	name := key + ":" + b.Name()
	if capacity > 0 {
		capacity = b.Prorate(capacity)
	}
	start, end, expiry := int64(0), int64(0), int64(0)
	if !b.Endless() {
		start, end, expiry = b.Start.UnixMicro(), b.End.UnixMicro(), keep(b, c.Rolls())
	}
	if usedAt(c) != 0 {
		start = -1 // the period is that of the counter's own time, whatever it is now
	}
	code := int64(codeQuota)
	if c.Rolls() {
		code = codeRollover
	}
	p.number(code)
	repeated, known := p.consumed(name, expiry)
	p.numbers(c.Cost, capacity)
	p.key(name+suffixRefunded, kindInteger)
	p.numbers(start, end, expiry, flag(c.Overdraws()))
	if code == codeRollover {
		p.rollover(key, name, c, b)
	}
	p.numbers(known.consumed, known.refunded)
	return repeated
}

// consumed names a quota's first key, and returns what is known of the quota.
func (p *part) consumed(name string, expiry int64) (repeated bool, known seen) {
	key := name + suffixConsumed
	repeated = p.key(key, kindInteger)
	p.totals[len(p.totals)-1] = totalsAt{p.keyAt(p.places[len(p.places)-1]), expiry}
	return repeated, p.memory.known(key)
}

// keep is when the keys of a period expire, s since the epoch.
func keep(b period.Bounds, rollover bool) int64 {
	end := b.End
	if rollover {
		if next := b.Calendar.At(end); !next.Endless() {
			end = next.End
		}
	}
	return end.Add(keepPeriod).Unix()
}

func (p *part) rollover(key, name string, c *limit.Counter, b period.Bounds) {
	// Of the calendar in force then, which a change may have replaced.
	last := c.Calendar.At(b.Start.Add(-time.Second))
	old := key + ":" + last.Name()
	p.key(name+suffixCarried, kindInteger)
	p.key(old+suffixConsumed, kindInteger)
	p.key(old+suffixRefunded, kindInteger)
	p.key(old+suffixCarried, kindInteger)
	granted := !c.Since.IsZero() && c.Since.Before(last.End)
	p.numbers(c.Rollover, last.Prorate(c.Limit), flag(granted))
}

func (p *part) wallet(key string, c *limit.Counter, capacity int64) (repeated bool) {
	p.number(codeWallet)
	repeated, known := p.consumed(key, 0)
	p.numbers(c.Cost, capacity)
	p.key(key+suffixRefunded, kindInteger)
	p.key(key+suffixForfeited, kindInteger)
	p.numbers(flag(c.Overdraws()), known.consumed, known.refunded, known.third)
	return repeated
}
