package charge

import (
	"context"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/sampledlog"
	"github.com/sluice-platform/sluice/libs/settle"
)

// Charger charges requests. Its fields are set before the first; it is safe for
// concurrent use.
type Charger struct {
	Store limit.Store
	// Counter is what a rule charges at that cost.
	Counter   func(m *rule.Match, cost int64) limit.Counter
	Shares    Shares
	Journal   Journal
	Unsettled *Unsettled
	Metrics   *Metrics
	Complain  *sampledlog.Log
}

// Journal keeps what could not be charged, corrected or given back until it can
// be: *settle.Settler. It copies its arguments, never blocks on I/O but that of
// the store in Decide, and is safe for concurrent use.
type Journal interface {
	Append(at time.Time, counters []limit.Counter)
	// Decide charges what may have to be given back: at the places of back, a bit
	// each. Of a decision that passes the hold is to be ended.
	Decide(ctx context.Context, counters []limit.Counter, back uint64) (limit.Decision, settle.Hold, error)
	Keep(h settle.Hold)
	GiveBack(h settle.Hold, at time.Time, counters []limit.Counter)
}

// Shares judges by this gateway's share of each limit: *share.Limiter.
type Shares interface {
	Observe(c *limit.Counter, st *limit.State)
	// Decide reports false where a share is unknown.
	Decide(counters []limit.Counter) (limit.Decision, bool)
	// GiveBack is of a decision that passed.
	GiveBack(counters []limit.Counter, d *limit.Decision)
}
