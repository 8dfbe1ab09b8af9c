package breaker

import (
	"bytes"
	"io"
	"sync"
)

// What travels through the heartbeat's pipe.
const (
	beatByte byte = iota
	roundByte
)

// rounds are bytes that are sent through the pipe on request. One is under way
// at a time; who asks meanwhile waits for the next one, as a byte that is
// already on its way proves nothing of what arrived after it was sent.
type rounds struct {
	mu            sync.Mutex
	w             io.Writer // nil: there is no pipe
	running, next chan struct{}
}

// Round returns a channel that is closed once a byte sent from now on has come
// back through this process's own poller. What had arrived from the network by
// now has then been handed to the goroutine that waits for it: on a process
// that runs that takes microseconds, on one that does not as long as it does
// not. It is closed at once where beats do not go through the poller, or Run
// does not run; a nil Heartbeat's is, too.
func (h *Heartbeat) Round() <-chan struct{} {
	if h == nil {
		return over
	}
	return h.rounds.ask()
}

var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (r *rounds) open(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w = w
}

func (r *rounds) ask() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.w == nil:
		return over
	case r.running == nil:
		r.running = make(chan struct{})
		_, _ = r.w.Write([]byte{roundByte}) // shut comes before the pipe is closed
		return r.running
	case r.next == nil:
		r.next = make(chan struct{})
	}
	return r.next
}

// came is told what came out of the pipe.
func (r *rounds) came(b []byte) {
	if bytes.IndexByte(b, roundByte) < 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running != nil {
		close(r.running)
	}
	r.running, r.next = r.next, nil
	if r.running != nil && r.w != nil {
		_, _ = r.w.Write([]byte{roundByte})
	}
}

// shut lets go of all who wait.
func (r *rounds) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w = nil
	for _, c := range []chan struct{}{r.running, r.next} {
		if c != nil {
			close(c)
		}
	}
	r.running, r.next = nil, nil
}
