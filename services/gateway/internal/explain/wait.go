package explain

import (
	"net/http"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
)

// looks are the counters that an explanation asks for, at cost 0 each. A
// winner's is at its place in of; behind them all are, of sliding windows, the
// ones that tell how long a cost would wait.
type looks struct {
	counters []limit.Counter
	of       []int // the winner of each of the first counters
	sooner   map[int]int
}

// add takes a winner's counter for a cost.
func (l *looks) add(winner int, c limit.Counter) {
	c.Cost = 0 // also where the rule has a cost of its own
	l.counters, l.of = append(l.counters, c), append(l.of, winner)
}

// addSooner adds the second looks. A sliding window says when one unit more is
// there. By a limit of cost - 1 less, where nothing is left, that is when the cost
// fits into the limit it has.
func (l *looks) addSooner(winners []winnerView) {
	l.sooner = make(map[int]int)
	for n, i := range l.of {
		c := l.counters[n]
		if cost := winners[i].Cost; c.Algorithm == limit.SlidingWindow && !c.Unlimited && cost > 1 && cost <= c.Limit {
			c.Limit -= cost - 1
			l.sooner[n] = len(l.counters)
			l.counters = append(l.counters, c)
		}
	}
}

// deny makes a look's state that of a decision on a cost which would not pass:
// whether waiting helps, and for how long.
func (l *looks) deny(n int, states []limit.State, cost int64) {
	c, st := &l.counters[n], &states[n]
	st.Allowed = false
	switch {
	case c.Wallet():
		st.Never = true
	case c.Algorithm.Quota():
		st.Never = c.Limit == 0 || st.Reset <= 0 || !c.Overdraws() && cost > c.Limit+c.Rollover
	default:
		st.Never = c.Limit == 0 || cost > c.Capacity()
	}
	if st.Never {
		return
	}
	st.RetryAfter = st.Reset
	if second, there := l.sooner[n]; there {
		st.RetryAfter = 0 // it ends while it was asked
		if states[second].Remaining == 0 {
			st.RetryAfter = states[second].Reset
		}
	} else if c.Algorithm.Bucket() {
		st.RetryAfter += refill(c, cost-st.Remaining-1)
	}
}

// refill is how long a bucket needs for units, rounded up to a microsecond:
// beside a reset that is rounded up too, it may be one too long.
func refill(c *limit.Counter, units int64) time.Duration {
	micros, rem, _ := limit.Emission(c.Limit, c.Window, units) // within MaxRefill, as its burst is
	if rem > 0 {
		micros++
	}
	return time.Duration(micros) * time.Microsecond
}

// foretell is the status that the gate would answer a request with, and its
// Retry-After before jitter, which only adds to it; 0 for neither. The verdict is
// reached by the code that requests go through.
func foretell(matches, asked []rule.Match, counters []limit.Counter, d limit.Decision) (status int, retryAfter int64) {
	q := &charge.Charges{Matches: matches}
	closed := func(m rule.Match) bool {
		return m.Rule.Unreadable != "" && !m.Rule.Shadow && m.Rule.OnStoreLoss == rules.StoreLossClosed
	}
	switch {
	case q.DenyMissing():
	case slices.ContainsFunc(matches, closed):
		if !q.DenyUnentitled() {
			return http.StatusServiceUnavailable, 0 // by chance, 1 to 3 seconds
		}
	default:
		d.Allowed = !slices.ContainsFunc(d.States, func(s limit.State) bool { return !s.Shadow && !s.Allowed })
		q.Judge(asked, counters, d)
	}
	if q.Verdict.Status == http.StatusTooManyRequests {
		retryAfter, _ = charge.Wait(q.Judged)
	}
	return q.Verdict.Status, retryAfter
}
