package redisstore

import (
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

// longCounter lets n pass and then no more for the length of a test.
func longCounter(a limit.Algorithm, n int64) limit.Counter {
	c := limit.Counter{Key: "{t:a}:t::m:" + a.String(), Algorithm: a, Cost: 1, Window: limit.MaxWindow - limit.MaxWindow%time.Second}
	if a.Quota() {
		c.Window, c.Calendar = 0, mustCalendar(period.Spec{Unit: period.NameNever})
	}
	return capacity(c, n)
}

// capacity sets how much a rested counter lets pass.
func capacity(c limit.Counter, n int64) limit.Counter {
	switch {
	case c.Wallet():
		c.Granted = n
	case c.Algorithm.Bucket():
		c.Limit, c.Burst, c.Window = 1, n, time.Hour
	default:
		c.Limit = n
	}
	return c
}

// remaining looks at what is left of counters.
func remaining(t testing.TB, s *Store, counters []limit.Counter) []int64 {
	t.Helper()
	look := make([]limit.Counter, len(counters))
	for i := range counters {
		look[i] = withCost(counters[i], 0)
	}
	d, err := s.Decide(t.Context(), look)
	if err != nil {
		t.Fatal(err)
	}
	left := make([]int64, len(counters))
	for i := range left {
		left[i] = d.States[i].Remaining
	}
	return left
}
