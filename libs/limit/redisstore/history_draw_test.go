package redisstore

import (
	"math/rand/v2"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

// dice draws from a seed, at a fraction of what drawing costs rapid. Rapid draws
// the seeds, one a decision, and so can leave out of a failing history what it
// fails without. Rapid prefers small seeds, of which there are few: salts that
// it draws more seldom make others of them.
type dice struct{ *rand.Rand }

func newDice(salt, seed uint64) dice { return dice{rand.New(rand.NewPCG(salt, seed))} }

// seeds draws up to so many.
func seeds(most int) *rapid.Generator[[]uint64] { return rapid.SliceOfN(rapid.Uint64(), 0, most) }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// oneIn is true once in n times.
func (d dice) oneIn(n int) bool { return d.IntN(n) == 0 }

// jump draws a step of the clock: none, within a window, over its end and back,
// and now and then into another period.
func (d dice) jump() time.Duration {
	switch d.IntN(16) {
	case 0, 1, 2, 3:
		return 0
	case 4:
		return time.Duration(d.IntN(3)) * time.Microsecond
	case 5, 6, 7, 8, 9:
		return time.Duration(d.IntN(3_000_001)) * time.Microsecond
	case 10:
		return time.Duration(d.IntN(2*3600)) * time.Second
	}
	return time.Duration(d.IntN(111)-20) * time.Second
}

// decision draws the counters of a request, from few keys, so that they meet.
func (h *history) decision(side int, salt, seed uint64) []limit.Counter {
	d := newDice(salt, seed)
	counters := make([]limit.Counter, 1+d.IntN(4))
	for i := range counters {
		counters[i] = h.counter(d, side)
	}
	return counters
}

// counter draws numbers that divide badly or are as large as they may be.
func (h *history) counter(d dice, side int) limit.Counter {
	c := limit.Counter{
		Algorithm: pick(d, h.algorithms...),
		Limit:     pick[int64](d, 0, 1, 2, 3, 7, 10, 60, 97, 1_000_003),
		Cost:      pick[int64](d, 0, 1, 1, 1, 2, 3, 5, 50, -1, -2, -7, -100, 1<<20, limit.MaxInteger),
		Unlimited: d.oneIn(8),
		Shadow:    d.oneIn(8),
		Force:     d.oneIn(8),
	}
	if c.Force {
		c.Cost = min(c.Cost, 1000) // times that go on adding up
	}
	if (c.Force || c.Cost < 0) && d.oneIn(2) {
		c.At = h.now.Add(-time.Duration(pick(d, 0, 1, 5, 10, 50, 80, 3600, 7200, 86400)) * time.Second)
	}
	id := pick(d, "a", "b")
	c.Key = h.run + string(rune('A'+side)) + c.Algorithm.String() + id
	if c.Algorithm.Quota() {
		h.quota(d, &c, id)
		return c
	}
	c.Window = windows[id]
	switch {
	case c.Algorithm.Bucket():
		c.Burst = min(c.Limit, 1)
		if c.Limit > 0 {
			c.Burst = pick(d, 1, 2, 10, 13, c.Limit, 1<<20)
		}
	case d.oneIn(8):
		c.Limit = limit.MaxInteger
	}
	return c
}

func (h *history) quota(d dice, c *limit.Counter, id string) {
	c.Calendar = calendars[id]
	c.Prepaid = c.Algorithm == limit.OverdraftQuota && id == "b"
	if c.Prepaid {
		c.Key += "prepaid"
	}
	if c.Wallet() {
		c.Granted = pick[int64](d, 0, 10, 100, 1_000_000)
		return
	}
	c.Rollover = pick[int64](d, 0, 0, 1, 5, 1000)
	if d.oneIn(2) {
		c.Since = start2050.Add(time.Duration(d.IntN(7)-3) * time.Hour)
	}
}

// What is part of identity: a key has one.
var (
	windows   = map[string]time.Duration{"a": 7 * time.Second, "b": time.Minute}
	calendars = map[string]period.Calendar{"a": period.Month(), "b": mustCalendar(period.Spec{Unit: period.NameHour})}
)

func mustCalendar(s period.Spec) period.Calendar {
	c, err := period.New(s)
	if err != nil {
		panic(err)
	}
	return c
}
