package redisstore

import (
	"context"
	"errors"
	"fmt"
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

// calls makes the calls of some batches, all in one go where there are several.
// Those whose slot is elsewhere go one by one, through the client that follows
// it; they name no epoch, since nobody knows beforehand which process runs them.
func (l *lanes) calls(batches []*batch) {
	s := l.s
	ctx, cancel := context.WithTimeout(s.background, s.o.CallTimeout)
	defer cancel()
	to, runID, err := l.connected(ctx)
	cmds := make([]charge, len(batches))
	var direct []redis.Cmder
	for i, b := range batches {
		if b.moved || to == nil {
			b.stamp(s, "")
			cmds[i] = b.command(s)
			_ = s.client.Process(ctx, cmds[i])
			continue
		}
		b.stamp(s, runID)
		cmds[i] = b.command(s)
		if err != nil {
			cmds[i].SetErr(fmt.Errorf("%w: %w", errNotSent, err))
			continue
		}
		direct = append(direct, cmds[i])
	}
	if len(direct) == 1 {
		_ = to.client.Process(ctx, direct[0])
	} else if len(direct) > 1 {
		pipe := to.client.Pipeline()
		for _, cmd := range direct {
			_ = pipe.Process(ctx, cmd)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
	}
	for i, b := range batches {
		b.again = b.take(l, cmds[i])
		if errors.Is(cmds[i].Err(), errOtherProcess) {
			l.rebind(to)
		}
		if l.refusal.lasts(cmds[i].Err(), s.now(), s.o.Budget) {
			b.again = false
		}
	}
}

// connected returns the connections to the server, and which process they lead
// to; nil where no server is known.
func (l *lanes) connected(ctx context.Context) (to *bound, runID string, err error) {
	if l.server == nil {
		return nil, "", nil
	}
	to = l.bound.Load()
	runID, err = to.process(ctx, l.s.text)
	if errors.Is(err, errOtherProcess) {
		l.rebind(to)
		to = l.bound.Load()
		runID, err = to.process(ctx, l.s.text)
	}
	return to, runID, err
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
