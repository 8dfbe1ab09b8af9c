package breaker

import (
	"context"
	"os"
	"sync"
	"time"
)

// DefaultBeat is the time between beats where none is given. A beat costs a
// few microseconds.
const DefaultBeat = 2 * time.Millisecond

// lateBy is how late a beat may be before the process is said to have stood
// still; timers of a busy but running process are late by less.
const lateBy = 2 * time.Millisecond

// stalls is how many are remembered. More than that within one call's wait
// means that the process hardly runs at all.
const stalls = 64

// Heartbeat knows when this process did not run: it was stopped, starved by
// others, or held up by its own collector. It beats while Run runs and measures
// how late each beat is. A nil Heartbeat knows of no stall. It is safe for
// concurrent use.
type Heartbeat struct {
	every time.Duration
	now   func() time.Time
	// polled: beats go through a pipe, see ThroughPoller.
	polled bool

	mu   sync.Mutex
	last time.Time // the last beat; zero while Run does not run
	past [stalls]stall
	next int // where the next stall goes

	rounds rounds
}

type stall struct{ from, to time.Time }

// NewHeartbeat returns one that beats every so often, 0 is DefaultBeat; now is
// its clock, nil is time.Now. Until Run it knows of no stall.
func NewHeartbeat(every time.Duration, now func() time.Time) *Heartbeat {
	if every <= 0 {
		every = DefaultBeat
	}
	if now == nil {
		now = time.Now
	}
	return &Heartbeat{every: every, now: now}
}

// ThroughPoller makes each beat travel through a pipe to a goroutine that waits
// for it as others wait for an answer from the network. While all processors
// are busy timers are looked at often, but the network only each 10 ms or so
// (runtime, sysmon): beats by timer alone would not see that. Call it before Run.
func (h *Heartbeat) ThroughPoller() *Heartbeat {
	h.polled = true
	return h
}

// Run beats until ctx is cancelled, and returns nil.
func (h *Heartbeat) Run(ctx context.Context) error {
	h.mu.Lock()
	h.last = h.now()
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.last = time.Time{}
		h.mu.Unlock()
	}()
	beat, stop := h.beater()
	defer stop()
	timer := time.NewTimer(h.every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			beat()
			timer.Reset(h.every)
		}
	}
}

// beater returns what is done at each beat, and what ends it.
func (h *Heartbeat) beater() (beat, stop func()) {
	if !h.polled {
		return h.beat, func() {}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return h.beat, func() {} // out of file descriptors: the timer's beat is better than none
	}
	h.rounds.open(w)
	var reading sync.WaitGroup
	reading.Go(func() {
		b := make([]byte, 64)
		for {
			n, err := r.Read(b)
			if err != nil {
				return
			}
			h.beat()
			h.rounds.came(b[:n])
		}
	})
	return func() { _, _ = w.Write([]byte{beatByte}) }, // it fails only when closed
		func() {
			h.rounds.shut()
			_ = w.Close()
			reading.Wait()
			_ = r.Close()
		}
}

func (h *Heartbeat) beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	if due := h.last.Add(h.every); now.Sub(due) > lateBy {
		h.past[h.next] = stall{due, now}
		h.next = (h.next + 1) % stalls
	}
	h.last = now
}

// Stalled returns how long this process stood still since that time, a stall
// that is only just ending included.
func (h *Heartbeat) Stalled(since time.Time) time.Duration {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last.IsZero() {
		return 0
	}
	var sum time.Duration
	for i := range h.past {
		sum += h.past[i].after(since)
	}
	if now, due := h.now(), h.last.Add(h.every); now.Sub(due) > lateBy {
		sum += stall{due, now}.after(since)
	}
	return sum
}

// after is how much of the stall lies behind since.
func (s stall) after(since time.Time) time.Duration {
	if s.from.Before(since) {
		s.from = since
	}
	return max(0, s.to.Sub(s.from))
}
