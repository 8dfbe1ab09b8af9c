package limit

import (
	"testing"
	"time"
)

func TestRefilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit     int64
		window, d time.Duration
		want      int64
	}{
		{20, 2 * time.Second, 99 * time.Millisecond, 0},
		{20, 2 * time.Second, 100 * time.Millisecond, 1},
		{20, 2 * time.Second, 2 * time.Second, 20},
		{3, time.Second, 333_333 * time.Microsecond, 0},
		{3, time.Second, 333_334 * time.Microsecond, 1},
		{3, time.Second, -time.Hour, 0},
		{0, time.Second, time.Hour, 0},
		{3, 0, time.Hour, 0},
		{MaxInteger, time.Second, 10 * time.Second, MaxInteger},
		{MaxInteger, time.Microsecond, 1 << 62, MaxInteger},
	} {
		if got := Refilled(c.limit, c.window, c.d); got != c.want {
			t.Errorf("%d in %s refill %d in %s, want %d", c.limit, c.window, got, c.d, c.want)
		}
	}
}

// A bucket gives back what it has not refilled since it was taken, in whole
// units; windows and quotas all of it.
func TestGivesBack(t *testing.T) {
	t.Parallel()
	taken := time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)
	for _, algorithm := range []Algorithm{GCRA, TokenBucket, FixedWindow, SlidingWindow, RenewingQuota, PrepaidQuota} {
		c := Counter{Algorithm: algorithm, Limit: 20, Window: 2 * time.Second, Burst: 20, Cost: -5, At: taken}
		for _, after := range []struct {
			passed time.Duration
			want   int64
		}{{-time.Second, 5}, {0, 5}, {99 * time.Millisecond, 5}, {100 * time.Millisecond, 4}, {499 * time.Millisecond, 1}, {500 * time.Millisecond, 0}, {time.Hour, 0}} {
			want := after.want
			if !algorithm.Bucket() {
				want = 5
			}
			if got := c.GivesBack(taken.Add(after.passed)); got != want {
				t.Errorf("%s gives back %d after %s, want %d", algorithm, got, after.passed, want)
			}
		}
		c.At = time.Time{}
		if got := c.GivesBack(taken.Add(time.Hour)); got != 5 {
			t.Errorf("%s gives back %d of 5 that were used now", algorithm, got)
		}
	}
}
