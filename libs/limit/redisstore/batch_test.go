package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/sluice-platform/sluice/libs/breaker"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// gate holds up the answers of a server to EVAL and EVALSHA, and counts them.
type gate struct {
	calls atomic.Int64
	hold  atomic.Pointer[chan struct{}]

	mu    sync.Mutex
	named []string // the keys of each call
}

func newGate(s *miniredis.Miniredis) *gate {
	g := &gate{}
	s.Server().SetPreHook(func(_ *server.Peer, cmd string, args ...string) bool {
		if cmd == "EVALSHA" || cmd == "EVAL" {
			g.mu.Lock()
			n, _ := strconv.Atoi(args[1])
			g.named = append(g.named, strings.Join(args[2:2+n], " "))
			g.mu.Unlock()
			g.calls.Add(1)
			if hold := g.hold.Load(); hold != nil {
				<-*hold
			}
		}
		return false
	})
	return g
}

func (g *gate) keys() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.named)
}

func (g *gate) shut() (open func()) {
	hold := make(chan struct{})
	g.hold.Store(&hold)
	return sync.OnceFunc(func() {
		g.hold.Store(nil)
		close(hold)
	})
}

func (s *Store) queued() int {
	s.servers.only.mu.Lock()
	defer s.servers.only.mu.Unlock()
	return s.servers.only.waiting.length
}

// Decisions that come while a call is under way travel in the next one, each
// with an answer of its own; one wrong-typed key spoils its own decision alone.
func TestWaitingDecisionsTravelTogether(t *testing.T) {
	t.Parallel()
	srv := miniredis.RunT(t)
	g := newGate(srv)
	s := newStore(t, newClient(t, srv.Addr()), Options{Lanes: 1})
	if _, err := s.Decide(t.Context(), []limit.Counter{quota(1)}); err != nil {
		t.Fatal(err) // the script is known, the connection there
	}
	_, _ = srv.Lpush("bad", "x")
	before := g.calls.Load()
	open := g.shut()
	defer open()
	var wg sync.WaitGroup
	var passed, denied, broken atomic.Int64
	decide := func(c limit.Counter) {
		wg.Go(func() {
			d, err := s.Decide(t.Context(), []limit.Counter{c})
			switch {
			case errors.Is(err, limit.ErrCounterBroken):
				broken.Add(1)
			case err != nil:
				t.Error(err)
			case d.Allowed:
				passed.Add(1)
			default:
				denied.Add(1)
			}
		})
	}
	decide(fixed(10))
	servertest.Eventually(t, 60*time.Second, "a call to be under way", func() bool { return g.calls.Load() == before+1 })
	for i := range 40 {
		c := fixed(10)
		if i%20 == 19 {
			c.Key = "bad"
		}
		decide(c)
	}
	servertest.Eventually(t, 60*time.Second, "40 to wait", func() bool { return s.queued() == 40 })
	open()
	wg.Wait()
	if n := g.calls.Load() - before; n != 2 {
		t.Errorf("%d calls for 41 decisions", n)
	}
	if passed.Load() != 10 || denied.Load() != 29 || broken.Load() != 2 {
		t.Errorf("%d passed, %d denied, %d broken; want 10, 29, 2", passed.Load(), denied.Load(), broken.Load())
	}
}

func TestABatchHasABound(t *testing.T) {
	t.Parallel()
	srv := miniredis.RunT(t)
	g := newGate(srv)
	s := newStore(t, newClient(t, srv.Addr()), Options{Lanes: 1, Queue: 200})
	if _, err := s.Decide(t.Context(), []limit.Counter{quota(1)}); err != nil {
		t.Fatal(err)
	}
	before := g.calls.Load()
	open := g.shut()
	defer open()
	var wg sync.WaitGroup
	for range 101 {
		wg.Go(func() {
			if _, err := s.Decide(t.Context(), []limit.Counter{fixed(1), sliding(1)}); err != nil {
				t.Error(err)
			}
		})
		// The first is on its way before the others queue.
		servertest.Eventually(t, 60*time.Second, "a call to be under way", func() bool { return g.calls.Load() > before })
	}
	servertest.Eventually(t, 60*time.Second, "100 to wait", func() bool { return s.queued() == 100 })
	if _, err := s.Decide(t.Context(), []limit.Counter{quota(1)}); !errors.Is(err, limit.ErrUnavailable) || !errors.Is(err, errQueueFull) {
		t.Errorf("the 102nd: %v", err)
	}
	open()
	wg.Wait()
	if n, want := g.calls.Load()-before, int64(1+(100*2+batchCounters-1)/batchCounters); n != want {
		t.Errorf("%d calls for 1 and 200 counters, want %d", n, want)
	}
}

// A decision whose answer is late has ended by then; what was charged is given
// back, and the connection was kept.
func TestLateAnswerIsGivenBack(t *testing.T) {
	t.Parallel()
	srv := miniredis.RunT(t)
	p := newProxy(t, srv.Addr())
	s := newStore(t, newClient(t, p.addr), Options{
		Budget: 50 * time.Millisecond, CallTimeout: generous, Breaker: breaker.Options{Silence: generous},
	})
	all := make([]limit.Counter, 0, len(everyAlgorithm))
	for _, a := range everyAlgorithm {
		all = append(all, longCounter(a, 10))
	}
	servertest.Eventually(t, 60*time.Second, "the first decision", func() bool {
		_, err := s.Decide(t.Context(), all)
		return err == nil
	})
	want := remaining(t, s, all)
	open := p.delay()
	started := time.Now()
	if _, err := s.Decide(t.Context(), all); !errors.Is(err, limit.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	if took := time.Since(started); took > time.Second {
		t.Errorf("waited %s", took)
	}
	open()
	servertest.Eventually(t, 60*time.Second, "the charge to be given back", func() bool { return s.Stats().Undone == 1 && s.idle() })
	if got := remaining(t, s, all); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v left, before it %v", got, want)
	}
	if s.Stats().Lost != 0 {
		t.Errorf("%+v", s.Stats())
	}
}

func (s *Store) idle() bool {
	s.servers.only.mu.Lock()
	defer s.servers.only.mu.Unlock()
	return s.servers.only.busy == 0 && s.servers.only.waiting.length == 0
}

// A call that Redis comes to too late, by its own clock, charges nothing.
func TestNothingIsChargedPastTheDeadline(t *testing.T) {
	t.Parallel()
	srv := miniredis.RunT(t)
	srv.SetTime(noon)
	g := newGate(srv)
	s := newStore(t, newClient(t, srv.Addr()), Options{
		Budget: 50 * time.Millisecond, CallTimeout: generous, Breaker: breaker.Options{Silence: generous},
	})
	servertest.Eventually(t, 60*time.Second, "the first decision", func() bool {
		_, err := s.Decide(t.Context(), []limit.Counter{quota(10)})
		return err == nil
	})
	before := remaining(t, s, []limit.Counter{quota(10)})[0]
	open := g.shut()
	defer open()
	if _, err := s.Decide(t.Context(), []limit.Counter{quota(10)}); !errors.Is(err, limit.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	srv.SetTime(noon.Add(time.Minute)) // Redis runs it now
	open()
	servertest.Eventually(t, 60*time.Second, "the call to end", s.idle)
	d, err := newStore(t, newClient(t, srv.Addr()), Options{}).Decide(t.Context(), []limit.Counter{withCost(quota(10), 0)})
	if err != nil || d.States[0].Remaining != before || d.States[0].Refunded != 0 {
		t.Fatalf("%+v, %v; %d were left", d, err, before)
	}
}

// A clock that was set makes one answer LATE; the call is sent again by the
// clock that answer showed.
func TestRedisClockSetForwardDeniesNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 5 {
		b.decide(fixed(100), quota(100))
		b.server.SetTime(b.now.Add(time.Hour)) // our own clock stays
	}
	b.server.SetTime(b.now.Add(-time.Hour))
	b.decide(fixed(100), quota(100))
}
