package servertest

import (
	"testing"
	"time"
)

// leastPatience is longer than any condition of ours takes on a machine that does much else: a test that passes does not
// wait for it.
const leastPatience = 2 * time.Minute

// Eventually polls cond until it is true, and fails the test when that takes longer than timeout, or than two minutes
// where timeout is less: it is no measure of time. A test of a promise with a time in it measures that itself. what
// completes the sentence "waited 5s for …". cond runs on the test's goroutine, so it may call t.Fatal.
func Eventually(t testing.TB, timeout time.Duration, what string, cond func() bool) {
	t.Helper()
	const first, longest = time.Millisecond, 50 * time.Millisecond
	timeout = max(timeout, leastPatience)
	deadline := time.Now().Add(timeout)
	for pause := first; !cond(); pause = min(2*pause, longest) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", timeout, what)
		}
		time.Sleep(pause)
	}
}
