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
	return breaker.New(breaker.Options{
		Errors: 3, Silence: 50 * time.Millisecond, ProbeEvery: 100 * time.Millisecond, Now: c.now,
	}), c
}

func TestErrorsInARowOpen(t *testing.T) {
	t.Parallel()
	b, _ := newBreaker()
	for range 10 { // never three in a row
		b.Failed(false)
		b.Failed(false)
		b.Answered()
	}
	if ok, probe := b.Allow(); !ok || probe || !b.Closed() {
		t.Fatal("opened by errors among answers")
	}
	for range 3 {
		b.Failed(false)
	}
	if ok, _ := b.Allow(); ok || b.Closed() {
		t.Fatal("three errors in a row did not open it")
	}
}

func TestSilenceOpensOneTimeoutDoesNot(t *testing.T) {
	t.Parallel()
	b, c := newBreaker()
	c.advance(40 * time.Millisecond)
	b.Answered()
	c.advance(20 * time.Millisecond)
	b.Failed(true) // one stalled call; others were answered 20 ms ago
	if !b.Closed() {
		t.Fatal("one time-out among answers opened it")
	}
	b.Answered()
	c.advance(50 * time.Millisecond)
	b.Failed(true)
	if b.Closed() {
		t.Fatal("50 ms without any answer did not open it")
	}
}

func TestProbing(t *testing.T) {
	t.Parallel()
	b, c := newBreaker()
	for range 3 {
		b.Failed(false)
	}
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
	b.Probed(false)
	if _, probe := b.Allow(); probe || b.Closed() {
		t.Fatal("a failed probe did not put off the next")
	}
	c.advance(100 * time.Millisecond)
	if _, probe := b.Allow(); !probe {
		t.Fatal("no second probe")
	}
	b.Probed(true)
	if ok, probe := b.Allow(); !ok || probe {
		t.Fatal("a good probe did not close it")
	}
	// Old errors are forgotten.
	b.Failed(false)
	b.Failed(false)
	if !b.Closed() {
		t.Fatal("errors before the outage's end still count")
	}
}

// A call that was let through before it opened, and is answered late, does not
// close it: only a probe does.
func TestLateAnswerDoesNotClose(t *testing.T) {
	t.Parallel()
	b, _ := newBreaker()
	for range 3 {
		b.Failed(false)
	}
	b.Answered()
	if b.Closed() {
		t.Fatal("closed by a straggler")
	}
}

func TestOneProbeAmongMany(t *testing.T) {
	t.Parallel()
	b, c := newBreaker()
	for range 3 {
		b.Failed(false)
	}
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
		b.Failed(false)
	}
	if b.Closed() {
		t.Fatal("the default does not open after three errors")
	}
}
