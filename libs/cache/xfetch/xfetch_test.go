package xfetch_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/cache/xfetch"
)

// The two laws of XFetch: e^(1/beta) refreshes an expiry, the first beta·delta·(ln(rate·beta·delta)+γ) before it.
func TestXFetchLaws(t *testing.T) {
	t.Parallel()
	const runs, rate = 2000, 200.0
	const delta = 500 * time.Millisecond
	for _, beta := range []float64{1, 2} {
		t.Run(strconv.FormatFloat(beta, 'f', 0, 64), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(uint64(beta), 42))
			var count int
			var lead time.Duration
			for range runs {
				n, l := xfetch.Simulate(rng, rate, delta, beta)
				count += n
				lead += l
			}
			mean, want := float64(count)/runs, math.Exp(1/beta)
			if math.Abs(mean-want) > 0.1*want {
				t.Errorf("%.3f refreshes an expiry, want %.3f ± 10 %%", mean, want)
			}
			early, wantEarly := (lead / runs).Seconds(), xfetch.LeadTime(rate, delta, beta).Seconds()
			if formula := beta * delta.Seconds() * (math.Log(rate*beta*delta.Seconds()) + 0.577); math.Abs(wantEarly-formula) > 1e-3 {
				t.Errorf("lead time %.3f s, the formula says %.3f", wantEarly, formula)
			}
			if math.Abs(early-wantEarly) > 0.1*wantEarly {
				t.Errorf("first refresh %.3f s early, want %.3f ± 10 %%", early, wantEarly)
			}
			t.Logf("beta %g: %.3f refreshes (%.3f), first %.3f s early (%.3f)", beta, mean, want, early, wantEarly)
		})
	}
}

func TestEarlyAtItsEnds(t *testing.T) {
	t.Parallel()
	if xfetch.Early(time.Nanosecond, time.Second, 1, 1) {
		t.Error("u = 1 refreshes before expiry")
	}
	if !xfetch.Early(0, time.Second, 1, 1) || !xfetch.Early(-1, 0, 0, 0.5) {
		t.Error("expired is not refreshed")
	}
	if !xfetch.Early(36*time.Second, time.Second, 1, math.Pow(2, -53)) || xfetch.Early(37*time.Second, time.Second, 1, math.Pow(2, -53)) {
		t.Error("the smallest draw reaches 36.7 deltas")
	}
}
