package limit

import (
	"errors"
	"fmt"
	"time"
)

// MaxInteger is the largest number a limit, burst or cost may be: Lua's
// numbers are doubles, which are exact up to here.
const MaxInteger = 1 << 53

// MaxWindow is the longest window of a rate.
const MaxWindow = 366 * 24 * time.Hour

// MaxRefill bounds the time a rested bucket stands for: burst × window ÷ limit.
// Together with MaxGCRALimit it keeps every sum the script makes of
// microseconds since the epoch below 2^53 until the year 2100.
const MaxRefill = (1 << 51) * time.Microsecond

// MaxGCRALimit bounds the limit of gcra and tokenBucket: four times the
// remainder, which is below limit, must stay exact.
const MaxGCRALimit = 1 << 50

var errCounter = errors.New("invalid counter")

// Check reports counters no store can judge exactly. libs/rule refuses the
// rules that would make them, so an error here is a programming error.
func (c *Counter) Check() error {
	switch {
	case c.Cost < -MaxInteger || c.Cost > MaxInteger:
		return fmt.Errorf("%w %s: cost %d", errCounter, c.Key, c.Cost)
	case c.Limit < 0 || c.Limit > MaxInteger:
		return fmt.Errorf("%w %s: limit %d", errCounter, c.Key, c.Limit)
	case c.Granted < 0 || c.Granted > MaxInteger:
		return fmt.Errorf("%w %s: granted %d", errCounter, c.Key, c.Granted)
	case c.Rollover < 0 || c.Rollover > MaxInteger-c.Limit:
		return fmt.Errorf("%w %s: rollover %d above a limit of %d", errCounter, c.Key, c.Rollover, c.Limit)
	case c.Algorithm.Quota():
		return nil
	}
	return c.checkRate()
}

func (c *Counter) checkRate() error {
	switch {
	case c.Algorithm == 0 || int(c.Algorithm) >= len(algorithmNames):
		return fmt.Errorf("%w %s: algorithm %d", errCounter, c.Key, c.Algorithm)
	case c.Window < time.Second || c.Window > MaxWindow || c.Window%time.Second != 0:
		return fmt.Errorf("%w %s: window %s", errCounter, c.Key, c.Window)
	case c.Algorithm.Bucket() && !c.Unlimited && c.Limit > 0:
		if _, ok := RefillTime(c.Limit, c.Window, c.Burst); !ok || c.Burst < 1 || c.Limit > MaxGCRALimit {
			return fmt.Errorf("%w %s: burst %d at %d per %s", errCounter, c.Key, c.Burst, c.Limit, c.Window)
		}
	}
	return nil
}
