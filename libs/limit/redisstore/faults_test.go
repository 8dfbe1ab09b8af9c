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
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/breaker"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/servertest"
	script "github.com/sluice-platform/sluice/schemas/redis"
)

// What a proxy does with answers.
const (
	passAnswers int32 = iota
	swallowAnswers
	cutOnAnswer
)

// proxy stands between a store and Redis. Requests always reach Redis, unless
// it is deaf.
type proxy struct {
	addr   string
	answer atomic.Int32
	deaf   atomic.Bool
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

// hearing passes on what is written to it, unless it is deaf.
type hearing struct {
	to   io.Writer
	deaf *atomic.Bool
}

func (h hearing) Write(b []byte) (int, error) {
	if h.deaf.Load() {
		return len(b), nil
	}
	return h.to.Write(b)
}

func (p *proxy) serve(client net.Conn, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	p.wg.Go(func() {
		_, _ = io.Copy(hearing{server, &p.deaf}, client)
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

// A charge whose answer is lost was made once (go-redis would send it four
// times); its caller hears that the store is unavailable, and so quotas are
// given back by the receipt of the call. Rates are not: they are counted.
func TestLostAnswerChargesOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]int32{"silence": swallowAnswers, "cut": cutOnAnswer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := miniredis.RunT(t)
			p := newProxy(t, srv.Addr())
			s := newStore(t, newClient(t, p.addr), Options{
				Budget: 50 * time.Millisecond, CallTimeout: 200 * time.Millisecond, Breaker: breaker.Options{Silence: generous, Errors: 1000},
			})
			servertest.Eventually(t, 60*time.Second, "the first decision", func() bool {
				_, err := s.Decide(t.Context(), []limit.Counter{fixed(1000)})
				return err == nil
			})
			direct := newStore(t, newClient(t, srv.Addr()), Options{})
			used := func() (rate, consumed, refunded int64) {
				d, err := direct.Decide(t.Context(), []limit.Counter{withCost(fixed(1000), 0), withCost(quota(100), 0)})
				if err != nil {
					t.Fatal(err)
				}
				return 1000 - d.States[0].Remaining, d.States[1].Consumed, d.States[1].Refunded
			}
			before, _, _ := used()
			p.answer.Store(fault)
			if _, err := s.Decide(t.Context(), []limit.Counter{quota(100), fixed(1000)}); !errors.Is(err, limit.ErrUnavailable) {
				t.Fatalf("error %v", err)
			}
			if rate, consumed, refunded := used(); rate != before+1 || consumed != 1 || refunded != 0 {
				t.Fatalf("rate %d after %d, %d consumed, %d refunded", rate, before, consumed, refunded)
			}
			servertest.Eventually(t, 60*time.Second, "the loss to be noticed", func() bool { return s.Stats().Lost > 0 })
			p.answer.Store(passAnswers)
			servertest.Eventually(t, 60*time.Second, "the quota to be given back", func() bool {
				_, _, refunded := used()
				return refunded == 1
			})
			if _, consumed, refunded := used(); consumed != 1 || refunded != 1 || s.Stats().Unknown != 0 {
				t.Errorf("%d consumed, %d refunded, %+v", consumed, refunded, s.Stats())
			}
		})
	}
}

// A settlement whose answer is lost is settled again, and applied once.
func TestLostSettlementIsAppliedOnce(t *testing.T) {
	t.Parallel()
	srv := miniredis.RunT(t)
	p := newProxy(t, srv.Addr())
	s := newStore(t, newClient(t, p.addr), Options{CallTimeout: 200 * time.Millisecond, Breaker: breaker.Options{Silence: generous, Errors: 1000}})
	settle := func() error {
		_, err := s.Settle(t.Context(), limit.Once{ID: "gw", Seq: 7}, []limit.Counter{withCost(quota(100), 3)})
		return err
	}
	p.answer.Store(cutOnAnswer)
	direct := newStore(t, newClient(t, srv.Addr()), Options{})
	consumed := func() int64 {
		d, err := direct.Decide(t.Context(), []limit.Counter{withCost(quota(100), 0)})
		if err != nil {
			t.Fatal(err)
		}
		return d.States[0].Consumed
	}
	if err := settle(); !errors.Is(err, limit.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	p.answer.Store(passAnswers)
	servertest.Eventually(t, 60*time.Second, "the settlement", func() bool { return settle() == nil })
	if err := settle(); err != nil || consumed() != 3 {
		t.Fatalf("%d consumed, %v", consumed(), err)
	}
}

// An advance whose answer is lost is not given back; calling it again tells that
// it took place.
func TestLostAdvanceTakesPlaceOnce(t *testing.T) {
	t.Parallel()
	srv := miniredis.RunT(t)
	p := newProxy(t, srv.Addr())
	s := newStore(t, newClient(t, p.addr), Options{CallTimeout: 200 * time.Millisecond, Breaker: breaker.Options{Silence: generous, Errors: 1000}})
	v := Advance{Steps: []Step{{stepKey, 0, 1}}, Counters: []limit.Counter{withCost(quota(100), 3)}, At: time.Now()}
	p.answer.Store(cutOnAnswer)
	if _, err := s.Advance(t.Context(), v); !errors.Is(err, limit.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	p.answer.Store(passAnswers)
	servertest.Eventually(t, 60*time.Second, "the second call to be told", func() bool {
		_, err := s.Advance(t.Context(), v)
		return errors.Is(err, ErrAdvanced)
	})
	d, err := s.Decide(t.Context(), []limit.Counter{withCost(quota(100), 0)})
	if err != nil || d.States[0].Consumed != 3 || d.States[0].Refunded != 0 {
		t.Fatalf("%+v, %v", d, err)
	}
}

// Answers that prove that nothing ran are followed by another try; no other is.
func TestWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	for answer, again := range map[string]bool{
		"MOVED 1 127.0.0.1:1": true, "ASK 1 127.0.0.1:1": true, "TRYAGAIN Multiple keys request during rehashing of slot": true,
		"LOADING Redis is loading the dataset in memory": true, "READONLY You can't write against a read only replica.": true,
		"CLUSTERDOWN The cluster is down": true, "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.": true,
		"NOSCRIPT No matching script.":                            true,
		"OOM command not allowed when used memory > 'maxmemory'.": false, "BUSY Redis is busy running a script.": false,
		"NOREPLICAS Not enough good replicas to write.": false, "ERR user_script:1: oops": false, "NOAUTH Authentication required.": false,
		"MISCONF Redis is configured to save RDB snapshots": false, "CROSSSLOT Keys in request don't hash to the same slot": false,
	} {
		srv := miniredis.RunT(t)
		s := newStore(t, newClient(t, srv.Addr()), Options{})
		if _, err := s.Decide(t.Context(), []limit.Counter{quota(100)}); err != nil {
			t.Fatal(err)
		}
		var calls, refusals atomic.Int64
		refusals.Store(2)
		srv.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
			if cmd != "EVALSHA" && cmd != "EVAL" || args[0] == script.Identity {
				return false
			}
			calls.Add(1)
			if refusals.Add(-1) < 0 {
				return false
			}
			c.WriteError(answer)
			return true
		})
		d, err := s.Decide(t.Context(), []limit.Counter{quota(100)})
		switch {
		case again && (err != nil || d.States[0].Consumed != 2 || calls.Load() != 3):
			t.Errorf("%s: %+v, %v after %d calls", answer, d, err, calls.Load())
		case !again && (!errors.Is(err, limit.ErrUnavailable) || calls.Load() != 1):
			t.Errorf("%s: %v after %d calls", answer, err, calls.Load())
		}
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
	servertest.Eventually(t, 60*time.Second, "the first decision", func() bool { return decide() == nil })
	p.answer.Store(swallowAnswers)
	servertest.Eventually(t, 60*time.Second, "the breaker to open", func() bool {
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
	servertest.Eventually(t, 60*time.Second, "the store to be back", func() bool { return decide() == nil })
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
	servertest.Eventually(t, 60*time.Second, "the first decision", func() bool { return decide() == nil })
	server.Close()
	servertest.Eventually(t, 60*time.Second, "the breaker to open", func() bool {
		err := decide()
		if !errors.Is(err, limit.ErrUnavailable) {
			t.Fatalf("error %v", err)
		}
		return !s.Available()
	})
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, 60*time.Second, "the store to be back", func() bool { return decide() == nil })
}

// Answers that refuse a call are the store's absence, but no reason to stop
// asking: they come at once.
func TestRefusalsAreUnavailable(t *testing.T) {
	t.Parallel()
	for _, refusal := range []string{
		"LOADING Redis is loading the dataset in memory",
		"OOM command not allowed when used memory > 'maxmemory'.", "BUSY Redis is busy running a script",
		"MASTERDOWN Link with MASTER is down", "NOAUTH Authentication required.", "ERR something else",
	} {
		t.Run(refusal, func(t *testing.T) {
			t.Parallel()
			server := miniredis.RunT(t)
			s := newStore(t, newClient(t, server.Addr()), Options{Budget: 50 * time.Millisecond})
			decide := func() error {
				_, err := s.Decide(t.Context(), []limit.Counter{quota(1)})
				return err
			}
			servertest.Eventually(t, 60*time.Second, "the first decision", func() bool { return decide() == nil })
			server.SetError(refusal)
			said := 0 // on a busy machine a try may outlast the budget, and say nothing
			servertest.Eventually(t, 60*time.Second, "three answers that say why", func() bool {
				err := decide()
				var reply redis.Error
				if !errors.Is(err, limit.ErrUnavailable) || errors.As(err, &reply) && reply.Error() != refusal {
					t.Fatalf("error %v", err)
				}
				if errors.As(err, &reply) {
					said++
				}
				return said >= 3
			})
			if !s.Available() {
				t.Fatal("the breaker is open")
			}
		})
	}
}
