package redisstore

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/breaker"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// What a proxy does with answers.
const (
	passAnswers int32 = iota
	swallowAnswers
	cutOnAnswer
)

// proxy stands between a store and Redis. Requests always reach Redis.
type proxy struct {
	addr   string
	answer atomic.Int32
	hold   atomic.Pointer[chan struct{}]
	wg     sync.WaitGroup
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String()}
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(conn, to) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.wg.Wait()
	})
	return p
}

// delay holds up answers until they are let go.
func (p *proxy) delay() (open func()) {
	hold := make(chan struct{})
	p.hold.Store(&hold)
	return sync.OnceFunc(func() {
		p.hold.Store(nil)
		close(hold)
	})
}

func (p *proxy) serve(client net.Conn, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	p.wg.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	defer client.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		if hold := p.hold.Load(); hold != nil {
			<-*hold
		}
		switch p.answer.Load() {
		case swallowAnswers:
			continue
		case cutOnAnswer:
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// A charge whose answer is lost was made once, and its caller hears that the
// store is unavailable: go-redis would send it four times.
func TestLostAnswerChargesOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]int32{"silence": swallowAnswers, "cut": cutOnAnswer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := miniredis.RunT(t)
			p := newProxy(t, server.Addr())
			s := newStore(t, newClient(t, p.addr), Options{Budget: time.Second})
			c := quota(100)
			if _, err := s.Decide(t.Context(), []limit.Counter{c}); err != nil {
				t.Fatal(err)
			}
			p.answer.Store(fault)
			if _, err := s.Decide(t.Context(), []limit.Counter{c}); !errors.Is(err, limit.ErrUnavailable) {
				t.Fatalf("error %v", err)
			}
			p.answer.Store(passAnswers)
			direct := newStore(t, newClient(t, server.Addr()), Options{})
			d, err := direct.Decide(t.Context(), []limit.Counter{withCost(c, 0)})
			if err != nil || d.States[0].Consumed != 2 {
				t.Fatalf("two decisions charged %+v, %v", d.States, err)
			}
		})
	}
}

// A silent Redis costs its first callers the time-out, later ones nothing, and
// is found again without any request's help but that it asks.
func TestBlackholeOpensTheBreakerAndHeals(t *testing.T) {
	t.Parallel()
	p := newProxy(t, miniredis.RunT(t).Addr())
	s := newStore(t, newClient(t, p.addr), Options{
		Budget:  200 * time.Millisecond,
		Breaker: breaker.Options{ProbeEvery: 20 * time.Millisecond},
	})
	decide := func() error {
		_, err := s.Decide(t.Context(), []limit.Counter{quota(1 << 40)})
		return err
	}
	servertest.Eventually(t, 5*time.Second, "the first decision", func() bool { return decide() == nil })
	p.answer.Store(swallowAnswers)
	servertest.Eventually(t, 5*time.Second, "the breaker to open", func() bool {
		if err := decide(); err != nil && !errors.Is(err, limit.ErrUnavailable) {
			t.Fatal(err)
		}
		return !s.Available()
	})
	// A hundred calls would take twenty seconds if each waited.
	started := time.Now()
	for range 100 {
		if err := decide(); !errors.Is(err, limit.ErrUnavailable) {
			t.Fatalf("error %v", err)
		}
	}
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("100 calls took %s while the breaker was open", took)
	}
	p.answer.Store(passAnswers)
	healed := time.Now()
	servertest.Eventually(t, 5*time.Second, "the store to be back", func() bool { return decide() == nil })
	if took := time.Since(healed); took > 2*time.Second {
		t.Errorf("back after %s", took)
	}
}

func TestStoppedRedisComesBack(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	s := newStore(t, newClient(t, server.Addr()), Options{Budget: 50 * time.Millisecond})
	decide := func() error {
		_, err := s.Decide(t.Context(), []limit.Counter{quota(1 << 40)})
		return err
	}
	servertest.Eventually(t, 5*time.Second, "the first decision", func() bool { return decide() == nil })
	server.Close()
	servertest.Eventually(t, 5*time.Second, "the breaker to open", func() bool {
		err := decide()
		if !errors.Is(err, limit.ErrUnavailable) {
			t.Fatalf("error %v", err)
		}
		return !s.Available()
	})
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, 5*time.Second, "the store to be back", func() bool { return decide() == nil })
}

// Answers that refuse a call are the store's absence, but no reason to stop
// asking: they come at once.
func TestRefusalsAreUnavailable(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	s := newStore(t, newClient(t, server.Addr()), Options{Budget: 50 * time.Millisecond})
	servertest.Eventually(t, 5*time.Second, "the first decision", func() bool {
		_, err := s.Decide(t.Context(), []limit.Counter{quota(1)})
		return err == nil
	})
	for _, refusal := range []string{
		"LOADING Redis is loading the dataset in memory",
		"OOM command not allowed when used memory > 'maxmemory'.", "BUSY Redis is busy running a script",
		"MASTERDOWN Link with MASTER is down", "NOAUTH Authentication required.", "ERR something else",
	} {
		server.SetError(refusal)
		for range 3 {
			_, err := s.Decide(t.Context(), []limit.Counter{quota(1)})
			var reply redis.Error
			if !errors.Is(err, limit.ErrUnavailable) || !errors.As(err, &reply) || reply.Error() != refusal {
				t.Fatalf("%s: error %v", refusal, err)
			}
		}
		if !s.Available() {
			t.Fatalf("%s opened the breaker", refusal)
		}
	}
}
