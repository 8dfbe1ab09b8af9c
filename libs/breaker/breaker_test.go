package breaker_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/breaker"
)

type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

func newBreaker() (*breaker.Breaker, *clock) {
	c := &clock{}
	c.advance(time.Hour)
	return breaker.New(breaker.Options{
		Errors: 3, Silence: 50 * time.Millisecond, ProbeEvery: 100 * time.Millisecond, Now: c.now,
	}), c
}

func broken(b *breaker.Breaker, c *clock, times int) {
	for range times {
		b.Failed(c.now(), false)
	}
}

func TestErrorsInARowOpen(t *testing.T) {
	t.Parallel()
	b, c := newBreaker()
	for range 10 { // never three in a row
		broken(b, c, 2)
		b.Answered(c.now())
	}
	if ok, probe := b.Allow(); !ok || probe || !b.Closed() {
		t.Fatal("opened by errors among answers")
	}
	broken(b, c, 3)
	if ok, _ := b.Allow(); ok || b.Closed() {
		t.Fatal("three errors in a row did not open it")
	}
}

// Time-outs are no connection errors: a budget that is too short for a busy
// server opens nothing, however often it is missed.
func TestTimeoutsAloneOpenNothing(t *testing.T) {
	t.Parallel()
	b, c := newBreaker()
	for range 100 {
		began := c.now()
		c.advance(10 * time.Millisecond)
		b.Failed(began, true)
	}
	if !b.Closed() {
		t.Fatal("opened by time-outs of 10 ms")
	}
}

// The first call after an idle hour has nobody's answer behind it; only its
// own wait counts.
func TestIdleTimeIsNoSilence(t *testing.T) {
	t.Parallel()
	b, c := newBreaker()
	b.Answered(c.now())
	c.advance(time.Hour)
	began := c.now()
	c.advance(20 * time.Millisecond)
	if b.Waiting(began); !b.Closed() {
		t.Fatal("20 ms after an idle hour opened it")
	}
	c.advance(30 * time.Millisecond)
	if b.Waiting(began); b.Closed() {
		t.Fatal("50 ms without any answer did not open it")
	}
}

// Answers to others mean that a call queues, and is not met by silence.
func TestQueueingIsNoSilence(t *testing.T) {
	t.Parallel()
	b, c := newBreaker()
	began := c.now()
	for range 20 {
		other := c.now()
		c.advance(10 * time.Millisecond)
		b.Answered(other)
		if b.Waiting(began); !b.Closed() {
			t.Fatal("opened while others are answered")
		}
	}
	if got := b.LastAnswer(10 * time.Millisecond); !got.Equal(c.now()) {
		t.Errorf("the last answer came at %s, and is said to have come at %s", c.now(), got)
	}
	if got := b.LastAnswer(9 * time.Millisecond); !got.IsZero() {
		t.Errorf("an answer of 10 ms came within 9, at %s", got)
	}
	// The last answer came after this call began: silence begins with it.
	c.advance(49 * time.Millisecond)
	if b.Waiting(began); !b.Closed() {
		t.Fatal("49 ms of silence opened it")
	}
	c.advance(time.Millisecond)
	if b.Waiting(began); b.Closed() {
		t.Fatal("50 ms of silence did not open it")
	}
}

func TestProbing(t *testing.T) {
	t.Parallel()
	b, c := newBreaker()
	broken(b, c, 3)
	if _, probe := b.Allow(); probe {
		t.Fatal("probe before its time")
	}
	c.advance(100 * time.Millisecond)
	if ok, probe := b.Allow(); ok || !probe {
		t.Fatal("no probe when it is time")
	}
	if _, probe := b.Allow(); probe {
		t.Fatal("two probes at once")
	}
	b.Probed(c.now(), false)
	if _, probe := b.Allow(); probe || b.Closed() {
		t.Fatal("a failed probe did not put off the next")
	}
	c.advance(100 * time.Millisecond)
	if _, probe := b.Allow(); !probe {
		t.Fatal("no second probe")
	}
	b.Probed(c.now(), true)
	if ok, probe := b.Allow(); !ok || probe {
		t.Fatal("a good probe did not close it")
	}
	// Old errors are forgotten.
	if broken(b, c, 2); !b.Closed() {
		t.Fatal("errors before the outage's end still count")
	}
}

// A server that answers each call later than anybody would wait is as good as
// silent: were it let in by such a probe, each time the first calls would wait.
func TestSlowProbeDoesNotClose(t *testing.T) {
	t.Parallel()
	b, c := newBreaker()
	broken(b, c, 3)
	for _, slow := range []bool{true, true, false} {
		c.advance(100 * time.Millisecond)
		if _, probe := b.Allow(); !probe {
			t.Fatal("no probe when it is time")
		}
		began := c.now()
		c.advance(50 * time.Millisecond)
		if slow {
			c.advance(time.Millisecond)
		}
		if b.Probed(began, true); b.Closed() == slow {
			t.Fatalf("closed %t by a probe that took %s", b.Closed(), c.now().Sub(began))
		}
	}
}

// A call that was let through before it opened, and is answered late, does not
// close it: only a probe does.
func TestLateAnswerDoesNotClose(t *testing.T) {
	t.Parallel()
	b, c := newBreaker()
	broken(b, c, 3)
	if b.Answered(c.now()); b.Closed() {
		t.Fatal("closed by a straggler")
	}
}

func TestOneProbeAmongMany(t *testing.T) {
	t.Parallel()
	b, c := newBreaker()
	broken(b, c, 3)
	c.advance(time.Second)
	var (
		probes atomic.Int64
		wg     sync.WaitGroup
	)
	for range 64 {
		wg.Go(func() {
			if ok, probe := b.Allow(); ok {
				t.Error("let through while open")
			} else if probe {
				probes.Add(1)
			}
		})
	}
	wg.Wait()
	if probes.Load() != 1 {
		t.Fatalf("%d probes, want 1", probes.Load())
	}
}

func TestZeroOptionsAreUsable(t *testing.T) {
	t.Parallel()
	b := breaker.New(breaker.Options{})
	for range 3 {
		b.Failed(time.Now(), false)
	}
	if b.Closed() {
		t.Fatal("the default does not open after three errors")
	}
}
