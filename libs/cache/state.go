package cache

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
)

// keyState is what this process remembers of a key beside its value. It outlives the value in L1, so that delta, rate
// and failures are known when the value is not.
type keyState struct {
	reads atomic.Int64 // since windowStart; the hot path only adds

	mu          sync.Mutex
	windowStart int64
	rate        float64 // reads a second in earlier windows, moving average
	delta       time.Duration
	backoff     backoff.Backoff
	failures    int
	blocked     int64 // no load of ours before
	err         error // the last failure
}

// rateWindow is long enough for a rate of one in some seconds to show.
const rateWindow = int64(10 * time.Second)

// readRate folds the reads counted so far into the rate and returns it.
func (s *keyState) readRate(now int64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	elapsed := now - s.windowStart
	if elapsed <= 0 {
		return s.rate
	}
	current := float64(s.reads.Load()) / time.Duration(elapsed).Seconds()
	if elapsed < rateWindow {
		if s.rate == 0 {
			return current
		}
		// A window just begun says little: it weighs as much as it has lasted.
		w := float64(elapsed) / float64(rateWindow)
		return w*current + (1-w)*s.rate
	}
	if s.rate == 0 {
		s.rate = current
	} else {
		s.rate = (s.rate + current) / 2
	}
	s.reads.Store(0)
	s.windowStart = now
	return s.rate
}

func (s *keyState) loaded(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delta = nextDelta(s.delta, took)
	s.failures, s.blocked, s.err = 0, 0, nil
	s.backoff.Reset()
}

// failed counts a failure and returns for how long loads are held back: not at all after the first, so that one mishap
// costs nobody anything.
func (s *keyState) failed(err error, now int64, before int) (count int, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = max(s.failures, before) + 1
	s.err = err
	if s.failures > 1 {
		delay = s.backoff.Next()
		s.blocked = now + int64(delay)
	}
	return s.failures, delay
}

// holdsBack is the error in place of a load, nil when one may be tried.
func (s *keyState) holdsBack(now int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now < s.blocked {
		return s.err
	}
	return nil
}

func (s *keyState) meanDelta() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delta
}

// deltaWeight is the newest measurement's share of delta: three loads carry two thirds.
const deltaWeight = 0.3

// nextDelta is the moving average of load times.
func nextDelta(old, measured time.Duration) time.Duration {
	if old <= 0 {
		return measured
	}
	return old + time.Duration(deltaWeight*float64(measured-old))
}
