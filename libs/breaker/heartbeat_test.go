package breaker_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-platform/sluice/libs/breaker"
)

// skewed is the bubble's clock plus what a stall takes: timers of a stopped
// process stand still while the world's time goes on.
type skewed struct{ by atomic.Int64 }

func (s *skewed) now() time.Time        { return time.Now().Add(time.Duration(s.by.Load())) }
func (s *skewed) stall(d time.Duration) { s.by.Add(int64(d)) }

func beating(t *testing.T, run func(*skewed, *breaker.Heartbeat)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var c skewed
		h := breaker.NewHeartbeat(2*time.Millisecond, c.now)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.Run(ctx) }()
		synctest.Wait()
		run(&c, h)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if d := h.Stalled(c.now().Add(-time.Hour)); d != 0 {
			t.Errorf("one that does not beat knows of %s", d)
		}
	})
}

func TestStallsAreMeasured(t *testing.T) {
	t.Parallel()
	beating(t, func(c *skewed, h *breaker.Heartbeat) {
		began := c.now()
		<-time.After(101 * time.Millisecond) // of the bubble: fifty beats in time
		if d := h.Stalled(began); d != 0 {
			t.Errorf("a running process stalled for %s", d)
		}
		c.stall(time.Second)
		// Known before the next beat, too: who waited wakes as early as it.
		if d := h.Stalled(began); d < 998*time.Millisecond || d > time.Second {
			t.Errorf("stalled for %s, want a second", d)
		}
		<-time.After(10 * time.Millisecond)
		if d := h.Stalled(began); d < 998*time.Millisecond || d > 1002*time.Millisecond {
			t.Errorf("stalled for %s, want a second", d)
		}
		if d := h.Stalled(c.now().Add(-5 * time.Millisecond)); d != 0 {
			t.Errorf("a stall before its time: %s", d)
		}
		half := c.now()
		c.stall(20 * time.Millisecond)
		<-time.After(5 * time.Millisecond)
		if d := h.Stalled(half); d < 18*time.Millisecond || d > 22*time.Millisecond {
			t.Errorf("stalled for %s, want 20 ms", d)
		}
	})
}

// What this process did not run for is not the server's silence.
func TestOwnStallIsNoSilence(t *testing.T) {
	t.Parallel()
	beating(t, func(c *skewed, h *breaker.Heartbeat) {
		b := breaker.New(breaker.Options{Silence: 50 * time.Millisecond, Heartbeat: h, Now: c.now})
		began := c.now()
		<-time.After(10 * time.Millisecond)
		c.stall(2 * time.Second)
		if b.Failed(began, true); !b.Closed() {
			t.Fatal("opened by a stall of our own")
		}
		// An answer that lay there meanwhile was quick.
		if b.Answered(began); b.LastAnswer(15*time.Millisecond).IsZero() || !b.LastAnswer(5*time.Millisecond).IsZero() {
			t.Error("an answer after 10 ms and a stall is not one of 10 ms")
		}
		began = c.now()
		c.stall(time.Second)
		<-time.After(55 * time.Millisecond)
		if b.Failed(began, true); !b.Closed() {
			t.Fatal("opened as soon after another stall")
		}
		<-time.After(50 * time.Millisecond)
		if b.Failed(began, true); b.Closed() {
			t.Fatal("silence after stalls did not open it")
		}
	})
}

func TestNilHeartbeatKnowsNoStall(t *testing.T) {
	t.Parallel()
	var h *breaker.Heartbeat
	if h.Stalled(time.Time{}) != 0 {
		t.Error("nil knows of a stall")
	}
}

// Beats that go through a pipe are beats, and end with their context.
func TestBeatsThroughThePoller(t *testing.T) {
	t.Parallel()
	var c skewed
	h := breaker.NewHeartbeat(time.Millisecond, c.now).ThroughPoller()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	// A jump of the clock is a stall that began after the last beat: once it is
	// over, and not before, it is remembered with its end.
	began := c.now()
	for h.Stalled(began) == 0 { // until it beats
		c.stall(10 * time.Millisecond)
		runtime.Gosched()
	}
	c.stall(time.Hour)
	deadline := time.Now().Add(10 * time.Second)
	for ended := c.now(); h.Stalled(ended) > 0 || h.Stalled(began) < time.Hour; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("stalled for %s since the beginning, %s since the end", h.Stalled(began), h.Stalled(ended))
		}
		ended = c.now()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A byte comes round through the poller, for each who asks, and nobody is left
// waiting when the beats end.
func TestRounds(t *testing.T) {
	t.Parallel()
	var none *breaker.Heartbeat
	<-none.Round()
	h := breaker.NewHeartbeat(0, nil).ThroughPoller()
	<-h.Round() // it does not run
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for range 1000 {
				<-h.Round()
			}
		})
	}
	asking.Wait()
	for range 4 {
		asking.Go(func() {
			for ctx.Err() == nil {
				<-h.Round()
			}
		})
	}
	cancel()
	asking.Wait()
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-h.Round()
}
