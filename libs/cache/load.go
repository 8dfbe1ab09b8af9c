package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
)

// call asks the source within the breaker, with retries within the budget. The run's lock, if any, is the caller's
// affair.
func (c *Cache[V]) call(ctx context.Context, key string, load Loader[V], shared bool) (Loaded[V], time.Duration, error) {
	c.budget.deposit()
	wait := backoff.Backoff{Min: c.opts.RetryMin, Max: c.opts.RetryMax}
	for try := 0; ; try++ {
		v, took, err := c.attempt(ctx, key, load, shared)
		var panicked *PanicError
		if err == nil || !c.isFailure(err) || errors.As(err, &panicked) || errors.Is(err, ErrSourceDown) ||
			try >= c.opts.Retries || ctx.Err() != nil || !c.budget.withdraw() {
			return v, took, err
		}
		if wait.Wait(ctx) != nil {
			return v, took, err
		}
	}
}

// isFailure tells what the source could not do from what it answered.
func (c *Cache[V]) isFailure(err error) bool {
	return !errors.Is(err, ErrNotFound) && c.opts.IsFailure(err)
}

// attempt is one call of the loader and what the breaker thinks of it.
func (c *Cache[V]) attempt(ctx context.Context, key string, load Loader[V], shared bool) (Loaded[V], time.Duration, error) {
	ok, probe := c.source.Allow()
	if !ok && !probe {
		return Loaded[V]{}, 0, ErrSourceDown
	}
	began := c.opts.Now()
	if shared {
		c.metrics.begin(key)
	}
	v, err := c.bounded(ctx, key, load, shared)
	took := c.opts.Now().Sub(began)
	failed := err != nil && c.isFailure(err)
	switch {
	case probe:
		c.source.Probed(began, !failed)
	case failed:
		c.source.Failed(began, false)
	default:
		c.source.Answered(began)
	}
	c.metrics.setSource(c.source.Closed())
	c.metrics.loadSeconds.Observe(took.Seconds())
	c.metrics.loads[outcomeName(err, failed)].Inc()
	return v, took, err
}

func outcomeName(err error, failed bool) string {
	var panicked *PanicError
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrNotFound):
		return "not_found"
	case !failed:
		return "answer"
	case errors.As(err, &panicked):
		return "panic"
	case errors.Is(err, ErrLoadTimeout):
		return "timeout"
	}
	return "error"
}

// bounded calls the loader and comes back at the latest after LoadTimeout, with or without it.
func (c *Cache[V]) bounded(ctx context.Context, key string, load Loader[V], shared bool) (Loaded[V], error) {
	type reply struct {
		v   Loaded[V]
		err error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.LoadTimeout, ErrLoadTimeout)
	defer cancel()
	replies := make(chan reply, 1)
	go func() {
		r := reply{err: &PanicError{Value: "the loader ended its goroutine"}}
		defer func() {
			if p := recover(); p != nil {
				r = reply{err: &PanicError{Value: p, Stack: debug.Stack()}}
			}
			if shared {
				c.metrics.end(key)
			}
			replies <- r
		}()
		r.v, r.err = load(ctx, key)
	}()
	select {
	case r := <-replies:
		if r.err != nil && ctx.Err() != nil {
			return r.v, fmt.Errorf("%w: %w", c.endOf(ctx), r.err)
		}
		return r.v, r.err
	case <-ctx.Done():
		return Loaded[V]{}, c.endOf(ctx)
	}
}

// direct loads for one caller alone: a private answer.
func (c *Cache[V]) direct(ctx context.Context, key string, load Loader[V]) (Result[V], error) {
	if load == nil {
		return Result[V]{}, errNoLoader
	}
	v, _, err := c.attempt(nest(ctx, c, key), key, load, false)
	if err != nil {
		c.metrics.errors.Inc()
		return Result[V]{}, err
	}
	c.metrics.bySource[Miss].Inc()
	return Result[V]{Value: v.Value, Source: Miss}, nil
}

var errNoLoader = errors.New("cache: neither the options nor the call have a loader")

// envelope makes what is stored of an answer. One draw of jitter spreads both TTLs.
func (c *Cache[V]) envelope(v *Loaded[V], negative bool, delta time.Duration) (envelope, error) {
	e := envelope{negative: negative, delta: delta}
	ttl := or(v.TTL, c.opts.TTL)
	if negative {
		ttl = c.opts.NegativeTTL
	} else {
		e.swr = max(0, or(v.StaleWhileRevalidate, c.opts.StaleWhileRevalidate))
		e.sie = max(0, or(v.StaleIfError, c.opts.StaleIfError))
		payload, err := c.opts.Codec.Encode(v.Value)
		if err != nil {
			return e, fmt.Errorf("encode value: %w", err)
		}
		e.payload = payload
	}
	ttl = min(ttl, maxTTL)
	physical := max(2*ttl, c.opts.PhysicalTTL, ttl+max(e.swr, e.sie))
	spread := 1 + c.opts.Jitter*(2*c.opts.Random()-1)
	e.logical = time.Duration(float64(ttl) * spread)
	// Never so short that a waiter who polls comes too late for the value it waited for.
	e.physical = max(time.Duration(float64(physical)*spread), e.logical+max(e.swr, e.sie), leastPhysical)
	return e, nil
}

// leastPhysical is several polls long.
const leastPhysical = 2 * time.Second
