package chart

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluice-platform/sluice/libs/cache/xfetch"
)

// delta is a load's time in the pictures; only the shares of it matter.
const delta = time.Second

// chance is the share of draws with which a read that comes left before expiry refreshes.
func chance(left time.Duration, beta float64) float64 {
	const draws = 2000
	hits := 0
	for i := range draws {
		if xfetch.Early(left, delta, beta, (float64(i)+0.5)/draws) {
			hits++
		}
	}
	return float64(hits) / draws
}

func probability() []byte {
	p := newPlot("the chance that one read refreshes the value",
		axis{name: "before expiry, in load times", from: 6, to: 0, ticks: ticks("%g", 6, 5, 4, 3, 2, 1, 0)},
		axis{name: "chance", from: 0, to: 1, ticks: ticks("%g", 0, 0.5, 1)})
	for i, beta := range []float64{0.5, 1, 2} {
		var curve []point
		for left := 6.0; left >= 0; left -= 0.05 {
			curve = append(curve, point{left, chance(time.Duration(left*float64(delta)), beta)})
		}
		// All end at 1: names stand one below the other.
		p.line(colours[i], fmt.Sprintf("beta %g", beta), 16*float64(i), curve)
	}
	return p.svg()
}

// recomputed is how many loads an expiry costs under XFetch alone, on average.
func recomputed(beta float64) float64 {
	const runs, rate = 2000, 50
	rng := rand.New(rand.NewPCG(uint64(beta*1000), 42)) //nolint:gosec // a picture must be the same each time
	sum := 0
	for range runs {
		n, _ := xfetch.Simulate(rng, rate, delta, beta)
		sum += n
	}
	return float64(sum) / runs
}

func loads() []byte {
	p := newPlot("loads an expiry: XFetch alone, 2,000 simulated expiries a dot; and with flight and lock",
		axis{name: "beta", from: 0.5, to: 3, ticks: ticks("%g", 0.5, 1, 1.5, 2, 2.5, 3)},
		axis{name: "loads an expiry", from: 0, to: 8, ticks: ticks("%g", 0, 2, 4, 6, 8)})
	var law []point
	for beta := 0.5; beta <= 3.001; beta += 0.05 {
		law = append(law, point{beta, math.Exp(1 / beta)})
	}
	p.line(colours[0], "e^(1/beta)", 0, law)
	for beta := 0.5; beta <= 3; beta += 0.25 {
		p.dot(colours[0], point{beta, recomputed(beta)})
	}
	p.line(colours[2], "flight and lock", 6, []point{{0.5, 1}, {3, 1}})
	return p.svg()
}

func ticks(format string, at ...float64) (all []tick) {
	for _, v := range at {
		all = append(all, tick{v, fmt.Sprintf(format, v)})
	}
	return all
}
