package membership

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/gateways"
)

// Position is where a gateway stands among those that live: one of Live, the
// Rank-th by id, from 0.
type Position struct{ Live, Rank int }

// Share is this position's part of n, which is at least 0: the parts of all positions
// sum up to n, the remainder of the division going to the lowest ranks.
func (p Position) Share(n int64) int64 {
	live := int64(max(1, p.Live))
	share := n / live
	if int64(p.Rank) < n%live {
		share++
	}
	return share
}

type member struct {
	started time.Time
	address string
	seen    time.Time // by our own clock
	left    bool
}

// set is who lives, as far as beats tell.
type set struct {
	self string
	now  func() time.Time

	position atomic.Pointer[Position]

	mu      sync.Mutex
	members map[string]member
	// heard is when the last beat arrived, of whomever; zero before the first.
	heard time.Time
}

func newSet(self string, now func() time.Time) *set {
	s := &set{self: self, now: now, members: map[string]member{}}
	s.position.Store(&Position{Live: 1})
	return s
}

// apply takes a beat that has just arrived.
func (s *set) apply(b gateways.Beat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.heard.IsZero() && now.Sub(s.heard) > gateways.GoneAfter-gateways.Every {
		// Kafka was away, and others are heard as late as we are: whoever lived
		// gets the time to beat again.
		for id, m := range s.members {
			m.seen = now
			s.members[id] = m
		}
	}
	s.heard = now
	if known, ok := s.members[b.ID]; !ok || !b.Started.Before(known.started) {
		s.members[b.ID] = member{started: b.Started, address: b.Address, seen: now, left: b.Leaving}
	}
	s.count()
}

// age forgets who has not been heard for long, measured up to the last beat
// that arrived: while none does, nobody ages.
func (s *set) age() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, m := range s.members {
		if s.heard.Sub(m.seen) > gateways.GoneAfter {
			delete(s.members, id)
		}
	}
	s.count()
}

// count publishes the position; the lock is held.
func (s *set) count() {
	p := Position{Live: 1}
	for id, m := range s.members {
		if id == s.self || m.left || s.heard.Sub(m.seen) > gateways.GoneAfter {
			continue
		}
		p.Live++
		if id < s.self {
			p.Rank++
		}
	}
	if p != *s.position.Load() {
		s.position.Store(&p)
	}
}

// silence is how long no beat arrived.
func (s *set) silence(since time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard.After(since) {
		since = s.heard
	}
	return s.now().Sub(since)
}
