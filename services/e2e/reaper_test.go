//go:build integration

package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// reaper stands between a process and the servers it talks to, and ends the
// process with SIGKILL at one of its steps: when the n-th answer of any of them
// has come, which the process never sees. What it asked for has happened, and
// nothing that it would have done next. A process changes nothing but through
// its servers, so the steps are all the instants that differ, but for those of
// its own files.
type reaper struct {
	t *testing.T

	mu     sync.Mutex // held while the victim dies: nobody hands it an answer
	victim *process
	left   int // answers until it dies; 0 lets it live
}

// arm has the process die at the n-th answer from now on.
func (r *reaper) arm(p *process, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.victim, r.left = p, n
}

// disarm lets the process live on; lived is false where it does not.
func (r *reaper) disarm() (lived bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lived = r.left > 0
	r.left = 0
	return lived
}

// struck reports whether the armed process has met its end.
func (r *reaper) struck() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left == 0
}

// answer is called with an answer in hand; false says that nobody is left to
// hand it to.
func (r *reaper) answer() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == 0 {
		return true
	}
	if r.left--; r.left > 0 {
		return true
	}
	r.victim.kill()
	return false
}

// through returns where to reach a server by way of the reaper.
func (r *reaper) through(server string) (addr string) {
	r.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	var open wires
	var carriers sync.WaitGroup // owned by the cleanup, which closes what they read
	r.t.Cleanup(func() {
		_ = listener.Close()
		open.close()
		carriers.Wait()
	})
	carriers.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			open.add(client, behind)
			carriers.Go(func() { carry(behind, client, func() bool { return true }) })
			carriers.Go(func() { carry(client, behind, r.answer) })
		}
	})
	return listener.Addr().String()
}

// carry hands on what arrives until one end is gone or ask says no; then both
// ends are closed.
func carry(to, from net.Conn, ask func() bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !ask() {
			return
		}
		if _, failed := to.Write(buffer[:n]); errors.Join(err, failed) != nil {
			return
		}
	}
}

// wires are the connections that are to be closed at the end.
type wires struct {
	mu     sync.Mutex
	all    []io.Closer
	closed bool
}

func (w *wires) add(ends ...io.Closer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, ends...)
	if w.closed { // accepted just before the end
		w.shut()
	}
}

func (w *wires) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.shut()
}

func (w *wires) shut() {
	for _, end := range w.all {
		_ = end.Close()
	}
}

// through is the configuration of a process that reaches Postgres and Redis by
// way of the reaper.
func (s *stack) through(r *reaper) map[string]any {
	s.t.Helper()
	dsn, err := url.Parse(s.postgres)
	if err != nil {
		s.t.Fatal(err)
	}
	dsn.Host = r.through(dsn.Host)
	return map[string]any{
		"postgres": map[string]any{"url": dsn.String()},
		"redis":    map[string]any{"counters": map[string]any{"addr": r.through(s.redisAddr), "keyPrefix": s.redisPrefix}},
	}
}

// mortal makes a gateway that reaches Redis by way of the reaper.
func (s *stack) mortal(r *reaper, id string) *gate {
	s.t.Helper()
	straight := s.redisAddr
	defer func() { s.redisAddr = straight }()
	s.redisAddr = r.through(straight)
	return s.gateway(id)
}

// totals tells what a tenant's quota of this month has consumed and refunded
// in Redis.
func (s *stack) totals(counters *redis.Client, tenant, metric string) [2]int64 {
	s.t.Helper()
	key := fmt.Sprintf("%s{t:%s}:t::%s:quota:month:%s:", s.redisPrefix, tenant, metric, time.Now().UTC().Format("200601"))
	consumed, _ := counters.Get(s.t.Context(), key+"c").Int64() // none: 0
	refunded, _ := counters.Get(s.t.Context(), key+"r").Int64()
	return [2]int64{consumed, refunded}
}
