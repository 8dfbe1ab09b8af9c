package redisstore

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/sluice-platform/sluice/libs/breaker"
	"github.com/sluice-platform/sluice/libs/limit"
)

// Times where Options say nothing.
const (
	// DefaultBudget is how long a call may take.
	DefaultBudget = 5 * time.Millisecond
	// DefaultCallTimeout is how long a connection waits for an answer.
	DefaultCallTimeout = 500 * time.Millisecond
)

// Bounds of what is under way.
const (
	defaultLanes      = 4
	defaultQueue      = 4096
	defaultRemembered = 200_000
	batchCounters     = 48 // holds Redis for about 300 µs at most
	pipelineBatches   = 8
	// longestQueue, in budgets, is how long a decision waits for its turn while
	// others are answered in time.
	longestQueue = 10
)

// Options say how the store behaves; the zero value is usable.
type Options struct {
	// KeyPrefix begins every key, so that deployments can share a Redis; it
	// must not hold { or }, which would move the hash tag.
	KeyPrefix string
	// Name is the gateway's, unique among those that share the counters; default
	// a random one.
	Name string
	// Remembered is of how many quotas the totals are remembered, about 200 bytes
	// each, for a Redis that loses them; default 200,000.
	Remembered int
	// Budget is how long a decision waits for the answer to its call, from when
	// that is sent; the call charges nothing later than that. Default
	// DefaultBudget.
	Budget time.Duration
	// CallTimeout is how long a connection is kept for an answer that is late;
	// default DefaultCallTimeout. Configure sets it on the client.
	CallTimeout time.Duration
	// Proxied: between this process and Redis is something that speaks the protocol
	// and may send a connection's commands to another server. Redis is asked in each
	// call then which process it is, which costs it about 4 µs.
	Proxied bool
	// Lanes is how many calls to one server are under way at once; default 4.
	// Decisions that come meanwhile travel together in the next one.
	Lanes int
	// Queue is how many decisions wait at most for one server; the next one is
	// refused with limit.ErrUnavailable. Default 4096.
	Queue int
	// Breaker says when calls are no longer tried; its Now defaults to Now,
	// its OnOpen is the store's own. Its Silence defaults to
	// breaker.DefaultSilence, or the Budget where that is longer.
	Breaker breaker.Options
	// Owe is handed what was charged, must be given back (costs below 0) or
	// charged again, and cannot be at once: it is to be applied later, once, as
	// Settle does. It must not block, keeps nothing of its argument, and may be
	// called until Close has returned. Where it is nil such counters are sent for
	// without further ado, and are lost where Redis does not take them.
	Owe func(at time.Time, counters []limit.Counter)
	// Report, where it is there, brings back what else this process knows of that
	// lies beside the quotas; it is called after the totals and the steps' numbers
	// were reported to a Redis that may have lost them, again after an error, and
	// may do no harm to one that has not.
	Report func(ctx context.Context) error
	// Now is the local clock, used to guess Redis's; nil is time.Now.
	Now func() time.Time
}

func (o *Options) setDefaults() {
	if o.Budget <= 0 {
		o.Budget = DefaultBudget
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = max(DefaultCallTimeout, o.Budget)
	}
	if o.Lanes <= 0 {
		o.Lanes = defaultLanes
	}
	if o.Queue <= 0 {
		o.Queue = defaultQueue
	}
	if o.Name == "" {
		o.Name = rand.Text()
	}
	if o.Remembered <= 0 {
		o.Remembered = defaultRemembered
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Breaker.Silence <= 0 {
		o.Breaker.Silence = max(breaker.DefaultSilence, o.Budget)
	}
	if o.Breaker.Now == nil {
		o.Breaker.Now = o.Now
	}
}
