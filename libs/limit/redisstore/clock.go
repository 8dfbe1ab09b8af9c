package redisstore

import (
	"sync"
	"time"
)

// driftPerSecond is how fast, in µs, two clocks may drift apart.
const driftPerSecond = 200

// clock guesses Redis's clock from ours. Redis read its own between a call and
// its answer, so each answer bounds the offset from both sides; the bounds of
// many answers are narrower than those of one.
type clock struct {
	now func() time.Time

	mu      sync.Mutex
	known   bool
	lo, hi  int64 // Redis's clock minus ours, µs: between these
	learned int64 // when, µs of our clock
}

// redis returns Redis's clock at our time t, never later than it is; ok is
// false before the first answer, when our own clock is all there is.
func (c *clock) redis(t time.Time) (at time.Time, ok bool) {
	c.mu.Lock()
	lo, known := c.lo, c.known
	c.mu.Unlock()
	return time.UnixMicro(t.UnixMicro() + lo).UTC(), known
}

// guess is Redis's clock now, as redis has it.
func (c *clock) guess() time.Time {
	now, _ := c.redis(c.now())
	return now
}

// learn takes what Redis's clock showed to a call sent and answered then.
func (c *clock) learn(sent, answered time.Time, redis int64) {
	lo, hi := redis-answered.UnixMicro(), redis-sent.UnixMicro()
	c.mu.Lock()
	defer c.mu.Unlock()
	drift := (answered.UnixMicro() - c.learned) * driftPerSecond / 1_000_000
	if drift < 0 {
		drift = 0
	}
	if c.known {
		oldLo, oldHi := c.lo-drift, c.hi+drift
		// Where they do not meet a clock was set, and what was known is void.
		if lo <= oldHi && hi >= oldLo {
			lo, hi = max(lo, oldLo), min(hi, oldHi)
		}
	}
	c.known, c.lo, c.hi, c.learned = true, lo, hi, answered.UnixMicro()
}
