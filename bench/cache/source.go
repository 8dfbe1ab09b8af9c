package main

import (
	"context"
	"sync"
	"time"
)

// source counts the loads of all processes. It is safe for concurrent use.
type source struct {
	mu             sync.Mutex
	loads, running int64
	most           int64
}

func (s *source) begin() (load int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	s.running++
	s.most = max(s.most, s.running)
	return s.loads
}

func (s *source) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

// reset forgets loads that have ended.
func (s *source) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads, s.most = s.running, s.running
}

func (s *source) seen() (loads, most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads, s.most
}

// hear counts the loads that a process tells of.
func (s *source) hear(line string) bool {
	switch line {
	case sayBegin:
		s.begin()
	case sayEnd:
		s.end()
	default:
		return false
	}
	return true
}

// work is one load.
func work(ctx context.Context, takes time.Duration) error {
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
