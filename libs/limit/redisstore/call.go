package redisstore

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

// charge is a command that go-redis never sends twice by itself: after a lost
// answer nobody knows whether it ran. (It still follows MOVED and ASK.)
type charge struct{ *redis.Cmd }

// NoRetry is asked by go-redis.
func (charge) NoRetry() bool { return true }

// nothingRan are the answers that prove that nothing was charged and of which
// another try may come to more. Every other answer is the store's absence to a
// request: OOM, BUSY, NOAUTH and their like would be answered again. (NOSCRIPT
// is sent again with the script's text, WRONG_PERIOD and LATE with what the
// answer said of Redis's clock.)
var nothingRan = []string{
	"MOVED", "ASK", "TRYAGAIN", "LOADING", "READONLY", "CLUSTERDOWN", "MASTERDOWN",
}

func provesNothingRan(err error) bool {
	for _, prefix := range nothingRan {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

// calls makes the calls of some batches, all in one go where there are several
// and this is the first try: later ones go one by one, through the client that
// follows a slot to where it is.
func (l *lanes) calls(batches []*batch, try int) {
	s := l.s
	cmds := make([]charge, len(batches))
	for i, b := range batches {
		b.stamp(s)
		cmds[i] = b.command(s)
	}
	ctx, cancel := context.WithTimeout(s.background, s.o.CallTimeout)
	defer cancel()
	if len(batches) > 1 && try == 0 {
		pipe := l.pipeline.Pipeline()
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
	} else {
		for _, cmd := range cmds {
			_ = s.client.Process(ctx, cmd)
		}
	}
	for i, b := range batches {
		b.again = b.take(l, cmds[i])
		if l.refusal.lasts(cmds[i].Err(), s.now(), s.o.Budget) {
			b.again = false
		}
	}
}

// pauseBefore a try lets a server that refuses come round: 1 ms, then 2, up to
// 8. Before the second one there is nothing to wait for (NOSCRIPT, MOVED).
func pauseBefore(try int) time.Duration {
	if try < 2 {
		return 0
	}
	return time.Millisecond << min(try-2, 3)
}

// isReply reports an error that Redis itself answered.
func isReply(err error) bool {
	var e redis.Error
	return errors.As(err, &e)
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.As(err, &e) && e.Timeout()
}
