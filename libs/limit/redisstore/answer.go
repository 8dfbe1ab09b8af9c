package redisstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

// Statuses of the script's answers.
const (
	statusDenied = iota
	statusAllowed
	statusWrongPeriod
	statusBroken
)

var errWrongPeriod = errors.New("wrong period")

// decision reads the script's answer. With errWrongPeriod the Decision holds
// Redis's time alone.
func (c *call) decision(counters []limit.Counter, reply []any) (limit.Decision, error) {
	status, now := number(reply, 0), number(reply, 1)
	d := limit.Decision{Now: time.UnixMicro(now).UTC()}
	switch {
	case len(reply) == 2 && status == statusWrongPeriod:
		return d, errWrongPeriod
	case len(reply) == 3 && status == statusBroken:
		key := ""
		if i := number(reply, 2) - 1; i >= 0 && i < int64(len(c.keys)) {
			key = c.keys[i]
		}
		return limit.Decision{}, fmt.Errorf("decide: key %q: %w", key, limit.ErrCounterBroken)
	case len(reply) != 2+3*len(c.keys) || status != statusAllowed && status != statusDenied:
		return limit.Decision{}, fmt.Errorf("decide: answer of %d numbers for %d keys: %w", len(reply), len(c.keys), limit.ErrUnavailable)
	}
	d.Allowed = status == statusAllowed
	d.States = make([]limit.State, len(counters))
	for i := range counters {
		n, st := &counters[i], &d.States[i]
		at := c.sent[i]
		if at < 0 {
			*st = freeState(n)
			continue
		}
		a, b := number(reply, 3+3*at), number(reply, 4+3*at)
		*st = limit.State{Key: n.Key, Allowed: number(reply, 2+3*at) == 1, Unlimited: n.Unlimited, Limit: n.Limit}
		st.Never = !st.Allowed && (n.Limit == 0 || n.Cost > n.Capacity())
		if n.Unlimited {
			st.Limit = 0
		}
		fill(st, n, &c.bounds[i], now, a, b)
	}
	return d, nil
}

// fill derives what a client wants to know from a counter's state a, b.
func fill(st *limit.State, n *limit.Counter, b *period.Bounds, now, x, y int64) {
	switch {
	case n.Algorithm == limit.RenewingQuota:
		st.Key = n.Key + ":" + b.Name()
		st.Consumed = x
		fillWindow(st, n, now, x, b.End.UnixMicro())
	case n.Limit == 0:
	case n.Algorithm == limit.FixedWindow:
		fillWindow(st, n, now, x, y)
	default:
		fillGCRA(st, n, now, x, y)
	}
}

func fillWindow(st *limit.State, n *limit.Counter, now, used, end int64) {
	if n.Unlimited || n.Limit == 0 {
		return
	}
	st.Remaining = max(0, n.Limit-used)
	st.Reset = time.Duration(end-now) * time.Microsecond
	if !st.Allowed && !st.Never {
		st.RetryAfter = st.Reset
	}
}

func freeStates(counters []limit.Counter) []limit.State {
	states := make([]limit.State, len(counters))
	for i := range counters {
		states[i] = freeState(&counters[i])
	}
	return states
}

func freeState(c *limit.Counter) limit.State {
	return limit.State{Key: c.Key, Allowed: true, Unlimited: true}
}

// number returns the i-th integer of a reply, -1 where there is none.
func number(reply []any, i int) int64 {
	if i < len(reply) {
		if n, ok := reply[i].(int64); ok {
			return n
		}
	}
	return -1
}
