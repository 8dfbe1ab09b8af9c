package servertest

import (
	"testing"
	"time"
)

// Eventually polls cond until it is true and fails the test when timeout has passed without that; what completes the
// sentence "waited 5s for …". cond runs on the test's goroutine, so it may call t.Fatal.
func Eventually(t testing.TB, timeout time.Duration, what string, cond func() bool) {
	t.Helper()
	const first, longest = time.Millisecond, 50 * time.Millisecond
	deadline := time.Now().Add(timeout)
	for pause := first; !cond(); pause = min(2*pause, longest) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", timeout, what)
		}
		time.Sleep(pause)
	}
}
