package limit

import (
	"context"
	"errors"
	"time"
)

// State is what one counter said, from the atomic step of its decision.
type State struct {
	// Key is the counter's identity; of a renewing quota with its period, such
	// as {t:acme}:t::reports:quota:month:202607.
	Key string
	// Allowed is this counter's own judgement: a request is denied when one
	// counter denies it, and the others stay as they were.
	Allowed bool
	// Never says that waiting does not help: cost above capacity, limit 0, or a
	// prepaid balance that only a top-up can raise.
	Never bool
	// Shadow echoes Counter.Shadow: the state says what would have been.
	Shadow bool
	// Broken says of a counter judged apart (Counter.Apart) that its key holds
	// something else; nothing is known of it, and nothing was charged to it.
	Broken bool
	// Unlimited says that Limit and Remaining mean nothing.
	Unlimited bool
	// Limit is the counter's limit as it was judged by, of a prepaid quota what
	// was granted, Carried included.
	Limit int64
	// Carried is what a quota with Rollover has from the last period.
	Carried int64
	// Remaining is the units left after this decision, 0 to capacity. A denied
	// decision took none.
	Remaining int64
	// Reset is the time until more units are there: the end of the window or
	// period, or gcra's next whole unit; 0 when the counter is full.
	Reset time.Duration
	// RetryAfter is the time after which the same cost would pass if nothing
	// else came; 0 when Allowed or Never.
	RetryAfter time.Duration
	// Consumed, Refunded and (of prepaid quotas) Forfeited are a quota's totals
	// after this decision, of a renewing one in its period; they only ever grow.
	// Used is Consumed - Refunded + Forfeited, which Force and overdraft can
	// bring above Limit.
	Consumed, Refunded, Forfeited int64
}

// Decision is the answer to all counters of one request.
type Decision struct {
	// Allowed means that every counter was charged, otherwise none was; those
	// judged apart (Counter.Apart) neither help nor hinder.
	Allowed bool
	// Now is the store's clock at the decision, microseconds, UTC.
	Now time.Time
	// States has one state a counter, in the counters' order.
	States []State
}

// Errors of a Store, to be tested with errors.Is. With either one nothing is
// known to be charged; after ErrUnavailable a charge may still have happened
// when the answer was lost on its way.
var (
	// ErrUnavailable means that the store could not be asked or did not answer
	// in time: the rules' onStoreLoss applies.
	ErrUnavailable = errors.New("counter store is unavailable")
	// ErrRestoring comes together with ErrUnavailable where the store answers, but
	// its quotas may have lost units and are being restored: nothing was charged.
	// Decisions without quotas go on.
	ErrRestoring = errors.New("quotas are being restored")
	// ErrOtherPeriod comes together with ErrUnavailable where the store's clock is in
	// another period of a quota than the one asked for.
	ErrOtherPeriod = errors.New("another period has begun")
	// ErrUnanswered comes together with ErrUnavailable where a call was sent, and its
	// answer is lost: the store may have charged it.
	ErrUnanswered = errors.New("the answer is lost")
	// ErrCounterBroken means that a counter's key holds something that is no
	// counter; nothing was charged. Only decisions on that counter fail.
	ErrCounterBroken = errors.New("counter is broken")
)

// Store decides. Implementations are safe for concurrent use.
type Store interface {
	// Decide charges all counters or none. Counters that share a key are
	// charged the sum of their costs. No counters: allowed, without asking.
	Decide(ctx context.Context, counters []Counter) (Decision, error)
}

// Once names something that a store does once, however often it is asked: the
// numbers of one ID grow, and the store remembers the last one it has done.
type Once struct {
	ID  string
	Seq uint64
}
