package cache_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
)

// lateReply holds back one reply of Redis: what it read there is old when it arrives.
type lateReply struct {
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
		if strings.HasPrefix(cmd.Name(), "evalsha") && l.armed.CompareAndSwap(true, false) {
			close(l.caught)
			<-l.free
		}
		return err
	}
}

// A read's reply is on its way while the key is invalidated: who asks after that does not get it, and it does not stay
// in L1.
func TestInvalidationOvertakesAReply(t *testing.T) {
	t.Parallel()
	for name, clear := range map[string]bool{"soft": false, "hard": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			var src source
			late := &lateReply{caught: make(chan struct{}), free: make(chan struct{})}
			rdb := client(t, s.mini.Addr())
			rdb.AddHook(late)
			a := s.node(func(o *options) { o.Load = src.load })
			b := s.node(func(o *options) { o.Load, o.Redis = src.load, rdb })
			get(t, a, "k")
			late.armed.Store(true)
			early, after := make(chan string, 1), make(chan string, 1)
			go func() { early <- get(t, b, "k").Value }()
			await(t, late.caught, "the reply")
			src.set(func(s *source) { s.version++ })
			invalidate := a.Invalidate
			if clear {
				invalidate = a.Clear
			}
			if err := invalidate(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the other process to hear", func() bool { return cache.Heard(b, "k") })
			go func() { after <- get(t, b, "k").Value }()
			eventually(t, "the late reader to join", func() bool { return cache.Waiters(b, "k") == 2 })
			close(late.free)
			if v := await(t, after, "the late reader"); v != "k@1" {
				t.Errorf("asked after the invalidation and got %q", v)
			}
			await(t, early, "the early reader")
			if v := get(t, b, "k").Value; v != "k@1" {
				t.Errorf("L1 kept %q", v)
			}
		})
	}
}
