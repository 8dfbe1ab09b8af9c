package state

import (
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

// Fill derives what a client wants to know of a counter n; b are the bounds of a
// renewing quota's period.
func (v Values) Fill(st *limit.State, n *limit.Counter, b *period.Bounds, allowed bool) {
	*st = limit.State{Key: n.Key, Allowed: allowed, Unlimited: n.Unlimited, Shadow: n.Shadow, Limit: n.Limit}
	if n.Unlimited {
		st.Limit = 0
	}
	switch {
	case n.Wallet():
		v.wallet(st, n)
	case n.Algorithm.Quota():
		v.quota(st, n, b)
	default:
		st.Never = !allowed && (n.Limit == 0 || n.Cost > n.Capacity())
		if n.Limit > 0 {
			v.rate(st, n)
		}
	}
}

func (v Values) rate(st *limit.State, n *limit.Counter) {
	waits := !st.Allowed && !st.Never
	switch n.Algorithm {
	case limit.FixedWindow:
		st.Remaining = max(0, n.Limit-v.A)
		st.Reset = micros(v.B - v.Now)
		if waits {
			st.RetryAfter = st.Reset
		}
	case limit.SlidingWindow:
		v.sliding(st, n, waits)
	default:
		fillBucket(st, n, v.Now, v.A, v.B)
	}
}

func (v Values) quota(st *limit.State, n *limit.Counter, b *period.Bounds) {
	st.Key = n.Key + ":" + b.Name()
	st.Consumed, st.Refunded, st.Carried = v.A, v.B, v.C
	if n.Unlimited {
		return
	}
	// What was carried or cut off in this period does not count for the next.
	st.Never = !st.Allowed && (n.Limit == 0 || b.Endless() || !n.Overdraws() && n.Cost > n.Limit+n.Rollover)
	if n.Limit == 0 {
		return
	}
	st.Limit = b.Prorate(n.Limit) + st.Carried
	st.Remaining = max(0, st.Limit-max(0, v.A-v.B))
	if b.Endless() {
		return
	}
	st.Reset = max(0, micros(b.End.UnixMicro()-v.Now))
	if !st.Allowed && !st.Never {
		st.RetryAfter = st.Reset
	}
}

func (v Values) wallet(st *limit.State, n *limit.Counter) {
	st.Consumed, st.Refunded, st.Forfeited = v.A, v.B, v.C
	if n.Unlimited {
		return
	}
	st.Limit = n.Granted
	st.Never = !st.Allowed
	st.Remaining = max(0, n.Granted-max(0, v.A-v.B)-v.C)
}
