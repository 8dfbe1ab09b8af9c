package redisstore

import (
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// What a bucket has refilled since it was charged does not come back: whenever it
// is given back, no more passes than its burst and its refill.
func TestBucketsTakeBackWhatTheyHaveNotRefilled(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []limit.Algorithm{limit.GCRA, limit.TokenBucket} {
		for late, refilled := range map[time.Duration]int64{0: 0, time.Second: 5, 1900 * time.Millisecond: 9, 2 * time.Second: 10, time.Hour: 10} {
			b := newBench(t)
			c := limit.Counter{Key: "{t:a}:t::m:" + algorithm.String(), Algorithm: algorithm, Limit: 10, Burst: 10, Window: 2 * time.Second, Cost: 10}
			d := b.decide(c)
			if !d.Allowed {
				t.Fatal("denied")
			}
			b.wait(late)
			if !b.decide(withCost(c, refilled)).Allowed { // others have it
				t.Fatalf("%s: %d are not refilled after %s", algorithm, refilled, late)
			}
			back := withCost(c, -10)
			back.At = d.Now
			for range 2 {
				if _, err := b.Settle(t.Context(), limit.Once{ID: "gw", Seq: 7}, []limit.Counter{back}); err != nil {
					t.Fatal(err)
				}
				if left := b.decide(withCost(c, 0)).States[0].Remaining; left != 10-refilled {
					t.Errorf("%s given back after %s: %d left, want %d", algorithm, late, left, 10-refilled)
				}
			}
		}
	}
}

// What another slot denies is given back in full to a bucket that was in use, and
// to one that was full as much as makes it full again.
func TestBucketsLoseNothingToOtherSlots(t *testing.T) {
	t.Parallel()
	c := limit.Counter{Algorithm: limit.GCRA, Limit: 1000, Burst: 1000, Window: time.Second, Cost: -5}
	for after, want := range map[time.Duration]int64{-time.Second: 0, 0: 0, 500 * time.Microsecond: 1, 3 * time.Millisecond: 4, 4500 * time.Microsecond: 5, time.Hour: 5} {
		if got := untaken(c, noon.Add(after), noon); -got.Cost != want || !got.At.Equal(noon) {
			t.Errorf("full %s later: %d are given back as of %s, want %d", after, -got.Cost, got.At, want)
		}
	}
}
