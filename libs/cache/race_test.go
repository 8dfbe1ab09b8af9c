package cache_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
)

// lateReply holds back one reply of Redis: what it read there is old when it arrives.
type lateReply struct {
	script string // whose
	armed  atomic.Bool
	caught chan struct{}
	free   chan struct{}
}

func (l *lateReply) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l *lateReply) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lateReply) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if slices.Contains(cmd.Args(), any(l.script)) && l.armed.CompareAndSwap(true, false) {
			close(l.caught)
			<-l.free
		}
		return err
	}
}

// A reply is on its way, of a look or of a leader's write, while the key is invalidated: who asks after that does not
// get it, and it does not stay in L1.
func TestInvalidationOvertakesAReply(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"look": cache.GetHash, "write": cache.WriteHash} {
		for kind, hard := range map[string]bool{"soft": false, "hard": true} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				overtaken(t, script, hard)
			})
		}
	}
}

func overtaken(t *testing.T, script string, hard bool) {
	s := newStand(t)
	var src source
	late := &lateReply{script: script, caught: make(chan struct{}), free: make(chan struct{})}
	rdb := client(t, s.mini.Addr())
	rdb.AddHook(late)
	a := s.node(func(o *options) { o.Load = src.load })
	b := s.node(func(o *options) { o.Load, o.Redis = src.load, rdb })
	get(t, b, "scripts are known")
	if script == cache.GetHash {
		get(t, a, "k")
	}
	late.armed.Store(true)
	early, after := make(chan string, 1), make(chan string, 1)
	go func() { early <- get(t, b, "k").Value }()
	await(t, late.caught, "the reply")
	src.set(func(s *source) { s.version++ })
	invalidate := a.Invalidate
	if hard {
		invalidate = a.Clear
	}
	if err := invalidate(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other process to hear", func() bool { return cache.Heard(b, "k") })
	// The source's next load is held, so what L1 holds meanwhile shows.
	begun, release := src.held()
	go func() { after <- get(t, b, "k").Value }()
	eventually(t, "the late reader to join", func() bool { return cache.Waiters(b, "k") == 2 })
	close(late.free)
	await(t, begun, "the load")
	if script == cache.WriteHash {
		if v := await(t, early, "the early reader"); v != "k@0" {
			t.Errorf("the early reader got %q", v)
		}
	}
	third := make(chan string, 1)
	go func() { third <- get(t, b, "k").Value }()
	release()
	for _, ch := range []chan string{after, third} {
		if v := await(t, ch, "a late reader"); v != "k@1" {
			t.Errorf("asked after the invalidation and got %q", v)
		}
	}
}

// lostReplies swallows the first n replies after they were given: the call was made, and nobody knows.
type lostReplies struct {
	lateReply
	left atomic.Int64
}

type timeoutError struct{ error }

func (timeoutError) Timeout() bool { return true }

func (l *lostReplies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if strings.HasPrefix(cmd.Name(), "evalsha") && err == nil && l.left.Add(-1) >= 0 {
			err = timeoutError{errors.New("reply lost")}
			cmd.SetErr(err)
		}
		return err
	}
}

// A reply that is lost is no outage: the flight asks again, finds the lock its own, and writes what it has written once.
func TestLostRepliesAreNoOutage(t *testing.T) {
	t.Parallel()
	for lost := range 4 { // the look, the lock, the write, one that is none of them
		s := newStand(t)
		var src source
		rdb := client(t, s.mini.Addr())
		lose := &lostReplies{}
		a := s.node(func(o *options) { o.Load, o.Redis = src.load, rdb })
		b := s.node(func(o *options) { o.Load = src.load })
		get(t, a, "warm") // the scripts are known
		rdb.AddHook(lose)
		lose.left.Store(int64(lost))
		wants(t, get(t, a, "k"), "k@0", cache.Miss)
		wants(t, get(t, b, "k"), "k@0", cache.HitL2)
		if n := src.loads.Load(); n != 2 {
			t.Errorf("%d replies lost: %d loads", lost, n)
		}
		if s.mini.Exists("cache:test:{k}:l") {
			t.Errorf("%d replies lost: the lock is left", lost)
		}
	}
}

// Run's end is the loads' end: their context ends, their readers learn why, and nothing goes on after it.
func TestRunWaitsForItsLoads(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var src source
	begun, release := src.held()
	defer release()
	o := quick(client(t, s.mini.Addr()))
	o.Load, o.Now = src.load, s.now
	c, err := cache.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, read := make(chan error, 1), make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	go func() { _, err := c.Get(t.Context(), "k"); read <- err }()
	await(t, begun, "the load")
	cancel()
	if err := await(t, ended, "run"); err != nil {
		t.Errorf("run: %v", err)
	}
	if cache.Waiters(c, "k") != 0 || src.running.Load() != 0 {
		t.Error("a flight outlives its cache")
	}
	if err := await(t, read, "the reader"); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("the reader got %v", err)
	}
	if s.mini.Exists("cache:test:{k}:l") {
		t.Error("the lock is left")
	}
}
