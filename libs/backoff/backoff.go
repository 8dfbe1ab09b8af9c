package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff counts failures in a row. The zero value waits up to 100 ms after
// the first and up to 5 s in the end. It belongs to one goroutine.
type Backoff struct {
	// Min is the ceiling of the first delay; 0 means 100 ms.
	Min time.Duration
	// Max is the ceiling of every later delay; 0 means 5 s.
	Max time.Duration

	failures int
}

// Next counts one failure and returns the delay before the next attempt, in
// (0, ceiling], where the ceiling doubles from Min to Max.
func (b *Backoff) Next() time.Duration {
	ceiling := b.ceiling()
	b.failures++
	return 1 + rand.N(ceiling)
}

// After returns a delay as Next would after that many failures in a row, of
// which the first is 1. For failures that are counted elsewhere.
func (b Backoff) After(failures int) time.Duration {
	b.failures = max(0, failures-1)
	return b.Next()
}

// Reset forgets the failures: the attempt has succeeded.
func (b *Backoff) Reset() { b.failures = 0 }

// Wait counts one failure and waits for its delay. It returns ctx's error if
// that ends first.
func (b *Backoff) Wait(ctx context.Context) error {
	timer := time.NewTimer(b.Next())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Backoff) ceiling() time.Duration {
	first, last := b.Min, b.Max
	if first <= 0 {
		first = 100 * time.Millisecond
	}
	if last <= 0 {
		last = 5 * time.Second
	}
	ceiling := first
	for range b.failures {
		if ceiling >= last/2 {
			return max(first, last)
		}
		ceiling *= 2
	}
	return min(ceiling, max(first, last))
}
