package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
)

// charge is a command that go-redis never sends twice by itself: after a lost
// answer nobody knows whether it ran. (It still follows MOVED and ASK.)
type charge struct{ *redis.Cmd }

// NoRetry is asked by go-redis.
func (charge) NoRetry() bool { return true }

// run sends the call, and sends it again with the script's text where the
// answer proves that it did not run because Redis does not know the script.
func (s *Store) run(ctx context.Context, c *call) ([]any, error) {
	c.args[0], c.args[1] = "evalsha", s.sha
	reply, err := s.send(ctx, c)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		c.args[0], c.args[1] = "eval", s.text
		reply, err = s.send(ctx, c)
	}
	if err == nil {
		return reply, nil
	}
	// Every other answer proves that nothing was charged, but not that another
	// try would fare better: LOADING, READONLY, OOM, BUSY, NOAUTH and their like
	// are the store's absence to a request.
	return nil, fmt.Errorf("decide: %w: %w", limit.ErrUnavailable, err)
}

func (s *Store) send(ctx context.Context, c *call) ([]any, error) {
	cmd := redis.NewCmd(ctx, c.args...)
	cmd.SetFirstKeyPos(3)
	began := s.now()
	// Process gives the error that Slice would, and counts for the breaker.
	if err := s.client.Process(ctx, charge{cmd}); err != nil {
		if isReply(err) {
			s.breaker.Answered(began)
		} else {
			s.breaker.Failed(began, isTimeout(err))
		}
		return nil, err
	}
	s.breaker.Answered(began)
	return cmd.Slice()
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
