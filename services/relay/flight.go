package relay

import (
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/outbox"
)

// flight is what was handed to Kafka and is not acknowledged yet, in the
// order of the WAL. Positions queue behind the rows before them, so that the
// confirmed one never passes a row that could still be lost.
type flight struct {
	mu        sync.Mutex
	queue     []*passage
	carried   []int64    // outbox rows that are done with and may be deleted
	confirmed outbox.LSN // everything up to here is done with
	// landed gets a token whenever the above changed.
	landed chan struct{}
}

// passage is one row, mirror record or position.
type passage struct {
	row      int64 // outbox id, 0 if none
	position outbox.LSN
	since    time.Time
	done     bool
	parked   bool // done with, but its row stays
}

func newFlight() *flight { return &flight{landed: make(chan struct{}, 1)} }

// depart queues a row or record that waits for its acknowledgement.
func (f *flight) depart(row int64, now time.Time) *passage {
	p := &passage{row: row, since: now}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, p)
	return p
}

// pass queues a position.
func (f *flight) pass(position outbox.LSN, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, &passage{position: position, since: now, done: true})
	f.advance()
}

// land marks a passage as done with, from any goroutine.
func (f *flight) land(p *passage, parked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.done, p.parked = true, parked
	f.advance()
}

// advance takes what is done with off the head; f.mu is held.
func (f *flight) advance() {
	n := 0
	for n < len(f.queue) && f.queue[n].done {
		p := f.queue[n]
		f.queue[n] = nil
		n++
		if p.row != 0 && !p.parked {
			f.carried = append(f.carried, p.row)
		}
		f.confirmed = max(f.confirmed, p.position)
	}
	f.queue = f.queue[n:]
	if n > 0 {
		select {
		case f.landed <- struct{}{}:
		default:
		}
	}
}

// takeCarried hands over the rows to delete.
func (f *flight) takeCarried() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := f.carried
	f.carried = nil
	return ids
}

func (f *flight) position() outbox.LSN {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.confirmed
}

func (f *flight) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue)
}

// oldest is how long the head has waited.
func (f *flight) oldest(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 {
		return 0
	}
	return now.Sub(f.queue[0].since)
}
