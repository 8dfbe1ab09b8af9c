package limit

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
)

// MaxInteger is the largest number a limit, burst or cost may be: Lua's
// numbers are doubles, which are exact up to here.
const MaxInteger = 1 << 53

// MaxRefill bounds the time a rested gcra counter stands for: burst × window ÷
// limit. Together with MaxGCRALimit it keeps every sum the script makes of
// microseconds since the epoch below 2^53 until the year 2100.
const MaxRefill = (1 << 51) * time.Microsecond

// MaxGCRALimit bounds gcra's limit: twice the remainder, which is below limit,
// must stay exact.
const MaxGCRALimit = 1 << 52

// Counter is one counter of a request and how it is judged this time.
type Counter struct {
	// Key is the counter's identity (schemas/redis/KEYS.md), without a
	// deployment's prefix and without a quota's period.
	Key       string
	Algorithm Algorithm
	// Limit is units per Window or period; 0 denies everything.
	Limit int64
	// Burst is gcra's capacity in units, at least 1 unless Limit is 0.
	Burst int64
	// Unlimited counts and never denies; Limit and Burst mean nothing then.
	Unlimited bool
	// Window is of rates; whole seconds.
	Window time.Duration
	// Calendar is of quotas.
	Calendar period.Calendar
	// Cost is the units to take, 0 to MaxInteger; 0 only looks.
	Cost int64
}

// Capacity is the largest cost that a rested counter lets pass.
func (c *Counter) Capacity() int64 {
	if c.Algorithm == GCRA {
		return c.Burst
	}
	return c.Limit
}

// Errors of Check.
var errCounter = errors.New("invalid counter")

// Check reports counters no store can judge exactly. libs/rule refuses the
// rules that would make them, so an error here is a programming error.
func (c *Counter) Check() error {
	switch {
	case c.Cost < 0 || c.Cost > MaxInteger:
		return fmt.Errorf("%w %s: cost %d", errCounter, c.Key, c.Cost)
	case c.Limit < 0 || c.Limit > MaxInteger:
		return fmt.Errorf("%w %s: limit %d", errCounter, c.Key, c.Limit)
	case c.Algorithm == RenewingQuota:
		return nil
	case c.Algorithm != GCRA && c.Algorithm != FixedWindow:
		return fmt.Errorf("%w %s: algorithm %d", errCounter, c.Key, c.Algorithm)
	case c.Window < time.Second || c.Window%time.Second != 0:
		return fmt.Errorf("%w %s: window %s", errCounter, c.Key, c.Window)
	case c.Algorithm == GCRA && !c.Unlimited && c.Limit > 0:
		if _, ok := RefillTime(c.Limit, c.Window, c.Burst); !ok || c.Burst < 1 || c.Limit > MaxGCRALimit {
			return fmt.Errorf("%w %s: burst %d at %d per %s", errCounter, c.Key, c.Burst, c.Limit, c.Window)
		}
	}
	return nil
}

// RefillTime returns how long limit units per window need for n units, rounded
// down to microseconds; ok is false above MaxRefill.
func RefillTime(limit int64, window time.Duration, n int64) (d time.Duration, ok bool) {
	micros, _, ok := Emission(limit, window, n)
	if !ok {
		return 0, false
	}
	return time.Duration(micros) * time.Microsecond, true
}

// Emission returns n × window ÷ limit in microseconds, exactly: whole
// microseconds and rem ÷ limit of one. ok is false above MaxRefill.
func Emission(limit int64, window time.Duration, n int64) (micros, rem int64, ok bool) {
	if limit <= 0 || n < 0 || window < 0 {
		return 0, 0, false
	}
	hi, lo := bits.Mul64(uint64(n), uint64(window.Microseconds()))
	if hi >= uint64(limit) {
		return 0, 0, false
	}
	q, r := bits.Div64(hi, lo, uint64(limit))
	if q > uint64(MaxRefill.Microseconds()) {
		return 0, 0, false
	}
	return int64(q), int64(r), true
}
