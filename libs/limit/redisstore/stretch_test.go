package redisstore

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/limit"
)

// Any stretch of a window's length, wherever it begins, holds what the
// algorithm promises: gcra and tokenBucket burst and refill, a fixed window
// twice its limit (once, where it is aligned), a sliding one less than twice.
// On the model, which the script is compared with.
func TestAnyStretchHoldsWhatIsPromised(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []limit.Algorithm{limit.GCRA, limit.TokenBucket, limit.FixedWindow, limit.SlidingWindow} {
		t.Run(algorithm.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { checkStretches(t, algorithm) })
		})
	}
}

type passing struct {
	at    time.Duration // since noon
	units int64
}

func checkStretches(t *rapid.T, algorithm limit.Algorithm) {
	window := time.Duration(rapid.IntRange(1, 60).Draw(t, "window")) * time.Second
	c := limit.Counter{Key: "k", Algorithm: algorithm, Window: window, Limit: rapid.Int64Range(1, 50).Draw(t, "limit")}
	most := 2 * c.Limit
	if algorithm.Bucket() {
		c.Burst = rapid.Int64Range(1, 50).Draw(t, "burst")
		most = c.Burst + c.Limit
	}
	var now time.Duration
	m := limit.NewModel(func() time.Time { return noon.Add(now) })
	var passed []passing
	for range rapid.IntRange(1, 150).Draw(t, "requests") {
		now += time.Duration(rapid.Int64Range(0, window.Microseconds()/4).Draw(t, "wait")) * time.Microsecond
		c.Cost = rapid.Int64Range(1, 5).Draw(t, "cost")
		d, err := m.Decide(t.Context(), []limit.Counter{c})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			passed = append(passed, passing{now, c.Cost})
		}
	}
	for i := range passed {
		var stretch, aligned int64
		for _, p := range passed[i:] {
			if p.at-passed[i].at < window {
				stretch += p.units
			}
			if index(p.at, window) == index(passed[i].at, window) {
				aligned += p.units
			}
		}
		if stretch > most || algorithm == limit.SlidingWindow && stretch == most && c.Limit > 1 {
			t.Fatalf("%d units passed within %s of %s, at most %d may: %+v", stretch, window, passed[i].at, most, passed)
		}
		if !algorithm.Bucket() && aligned > c.Limit {
			t.Fatalf("%d units passed in one window of %d", aligned, c.Limit)
		}
	}
}

// index numbers the aligned windows since the epoch.
func index(at, window time.Duration) int64 {
	return noon.Add(at).UnixMicro() / window.Microseconds()
}
