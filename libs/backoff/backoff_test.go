package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestDelaysStayBelowTheGrowingCeiling(t *testing.T) {
	b := Backoff{Min: 10 * time.Millisecond, Max: 70 * time.Millisecond}
	want := []time.Duration{10, 20, 40, 70, 70, 70}
	for round := range 200 {
		b.Reset()
		for i, ms := range want {
			if d := b.Next(); d <= 0 || d > ms*time.Millisecond {
				t.Fatalf("round %d, failure %d: delay %v is not in (0, %v]", round, i+1, d, ms*time.Millisecond)
			}
		}
	}
}

func TestDelayAfterFailuresCountedElsewhere(t *testing.T) {
	b := Backoff{Min: 10 * time.Millisecond, Max: 70 * time.Millisecond}
	for failures, ms := range map[int]time.Duration{0: 10, 1: 10, 2: 20, 3: 40, 4: 70, 1000: 70} {
		longest := time.Duration(0)
		for range 300 {
			d := b.After(failures)
			if d <= 0 || d > ms*time.Millisecond {
				t.Fatalf("after %d failures: %v is not in (0, %v]", failures, d, ms*time.Millisecond)
			}
			longest = max(longest, d)
		}
		if longest < ms*time.Millisecond/2 {
			t.Errorf("after %d failures: never above %v", failures, longest)
		}
	}
}

func TestDelaysAreSpread(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 50 {
		b := Backoff{}
		seen[b.Next()] = true
	}
	if len(seen) < 10 {
		t.Fatalf("50 processes drew only %d different delays", len(seen))
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Backoff{Min: time.Hour, Max: time.Hour}
		ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		defer cancel()
		if err := b.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Wait = %v, want the context's error", err)
		}
	})
}

func TestWaitReturnsAfterTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		b := Backoff{Min: time.Minute, Max: time.Minute}
		if err := b.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited <= 0 || waited > time.Minute {
			t.Fatalf("waited %v", waited)
		}
	})
}
