package indexer

import (
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/stream"
)

// lag measures how far search is behind the gateways.
type lag struct {
	mu   sync.Mutex
	work time.Time     // record time of the oldest event at work; zero between batches
	last time.Duration // age of the last event when its batch was settled
}

func (l *lag) begin(batch []stream.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.work = batch[0].Timestamp
	for _, r := range batch {
		if r.Timestamp.Before(l.work) {
			l.work = r.Timestamp
		}
	}
}

func (l *lag) end(batch []stream.Record, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.work = time.Time{}
	l.last = max(0, now.Sub(batch[len(batch)-1].Timestamp))
}

func (l *lag) seconds(now time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.work.IsZero() {
		return l.last.Seconds()
	}
	return max(0, now.Sub(l.work)).Seconds()
}
