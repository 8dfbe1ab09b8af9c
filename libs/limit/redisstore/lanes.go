package redisstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

var errQueueFull = errors.New("too many decisions wait")

// add queues the part, and starts a lane where one is free. No owner may hold
// more than half of the queue, so that there is room for the others. While the
// server goes on refusing, most are told so here.
func (l *lanes) add(p *part) error {
	if err := l.refusal.instead(l.s.now(), l.s.o.Budget); err != nil {
		return fmt.Errorf("decide: %w: %w", limit.ErrUnavailable, err)
	}
	p.owner = epoch.SlotOf(p.keys[0])
	l.mu.Lock()
	if l.waiting.length >= l.s.o.Queue || l.waiting.waits(p.owner) >= (l.s.o.Queue+1)/2 {
		l.mu.Unlock()
		l.silence() // those who left fill it up while no call is answered
		return fmt.Errorf("decide: %w: %w", limit.ErrUnavailable, errQueueFull)
	}
	l.waiting.add(p)
	start := l.busy < l.s.o.Lanes
	if start {
		l.busy++
	}
	l.mu.Unlock()
	if start {
		l.s.running.Go(l.work)
	}
	return nil
}

// work sends what waits until nothing does.
func (l *lanes) work() {
	n := l.s.lanePool.Get().(*lane)
	for l.fill(n) {
		l.send(n)
		for i := range n.batches[:n.used] {
			n.batches[i].hand(l.s)
			n.batches[i].reset()
		}
	}
	l.s.lanePool.Put(n)
}

// fill takes what waits, as far as it goes; the lane ends where it returns
// false.
func (l *lanes) fill(n *lane) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n.used = 0
	l.waiting.take(l.pipelines(), func(p *part) offer {
		if p.state.Load() == partLeft && !p.settle {
			l.s.release(p)
			return gone
		}
		b := l.place(n, p)
		if b == nil {
			return refused
		}
		b.add(p)
		return placed
	})
	if n.used == 0 {
		l.busy--
		delete(l.began, n)
		return false
	}
	n.sent++
	l.began[n] = l.s.now()
	return true
}

// place returns the batch that the part travels with, nil where none has room.
func (l *lanes) place(n *lane, p *part) *batch {
	for i := range n.batches[:n.used] {
		if b := &n.batches[i]; b.slot == p.slot {
			if b.fits(p) {
				return b
			}
			return nil
		}
	}
	if n.used > 0 && !l.pipelines() || n.used == len(n.batches) {
		return nil
	}
	n.used++
	return &n.batches[n.used-1]
}

// send makes the calls, and makes those again whose answers prove that nothing
// ran, as long as somebody waits.
func (l *lanes) send(n *lane) {
	s := l.s
	again := n.batches[:n.used]
	for i := range again {
		again[i].lay(s)
		n.sign(s, &again[i])
	}
	pending := make([]*batch, 0, pipelineBatches)
	for i := range again {
		pending = append(pending, &again[i])
	}
	for try := 0; len(pending) > 0; try++ {
		if d := pauseBefore(try); d > 0 {
			<-time.After(d)
		}
		l.calls(pending)
		left := pending[:0]
		for _, b := range pending {
			if b.again && b.waited(s, pauseBefore(try+1)) {
				left = append(left, b)
			}
		}
		pending = left
	}
	for i := range n.batches[:n.used] {
		b := &n.batches[i]
		if !b.lost() {
			continue
		}
		s.counts.lost.Add(b.decisions())
		if b.once.number > 0 {
			n.handOver(l, b)
		}
	}
}

// pipelines reports whether several batches go in one go: they are of one slot
// each.
func (l *lanes) pipelines() bool { return l.s.servers.cluster != nil && l.server != nil }

// silence tells the breaker of the calls under way, of which none may have
// been answered for too long.
func (l *lanes) silence() {
	l.mu.Lock()
	var oldest time.Time
	for _, t := range l.began {
		if oldest.IsZero() || t.Before(oldest) {
			oldest = t
		}
	}
	l.mu.Unlock()
	if !oldest.IsZero() {
		l.breaker.Waiting(oldest)
	}
}
