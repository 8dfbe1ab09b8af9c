package xfetch

import (
	"math"
	"time"
)

// MaxDraw is the largest -ln(u): u is a multiple of 2^-53, so beyond it no draw can reach.
const MaxDraw = 53 * math.Ln2

// Early is XFetch's test: whether a reader that draws u in (0,1] refreshes a value that expires in left, whose load
// takes delta: now − delta·beta·ln(u) ≥ expiry. The nearer the expiry and the slower the load, the likelier.
//
// A. Vattani, F. Chierichetti, K. Lowenstein, "Optimal Probabilistic Cache Stampede Prevention", VLDB 2015.
func Early(left, delta time.Duration, beta, u float64) bool {
	return float64(left) <= -float64(delta)*beta*math.Log(u)
}

// LeadTime is how long before expiry the first of rate readers a second refreshes, on average: beta·delta·(ln(rate·
// beta·delta)+γ), the mean of a Gumbel distribution; negative when it comes after expiry.
func LeadTime(rate float64, delta time.Duration, beta float64) time.Duration {
	const gamma = 0.5772156649015329
	scale := beta * delta.Seconds()
	if rate*scale <= 0 {
		return 0
	}
	return time.Duration(scale * (math.Log(rate*scale) + gamma) * float64(time.Second))
}
