package xfetch

import (
	"math"
	"math/rand/v2"
	"time"
)

// Simulate runs XFetch alone, without flight or lock, over one expiry: readers come as a Poisson process; a refresh
// that one of them draws takes delta, and until it ends others draw theirs. It returns the number of refreshes and how
// long before expiry the first began.
func Simulate(rng *rand.Rand, rate float64, delta time.Duration, beta float64) (recomputes int, lead time.Duration) {
	// Twenty times beta·delta before expiry nobody draws: the chance is rate·beta·delta·e^-20.
	now, expiry := time.Duration(0), time.Duration(20*beta*float64(delta))
	end := time.Duration(math.MaxInt64) // of the first refresh
	for {
		now += time.Duration(rng.ExpFloat64() / rate * float64(time.Second))
		if now >= end {
			return recomputes, lead
		}
		if !Early(expiry-now, delta, beta, 1-rng.Float64()) {
			continue
		}
		if recomputes++; recomputes == 1 {
			lead, end = expiry-now, now+delta
		}
	}
}
