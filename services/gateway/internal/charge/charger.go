package charge

import (
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/sampledlog"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge/journal"
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
// be: *journal.Journal. It copies its arguments, never blocks on I/O, and is safe
// for concurrent use.
type Journal interface {
	Append(at time.Time, counters []limit.Counter)
	// Begin has what a request was charged given back if this process is killed
	// before the request is ended with End or GiveBack.
	Begin(at time.Time, counters []limit.Counter) journal.InFlight
	End(f journal.InFlight)
	GiveBack(f journal.InFlight, at time.Time, counters []limit.Counter)
}

// Shares judges by this gateway's share of each limit: *share.Limiter.
type Shares interface {
	Observe(c *limit.Counter, st *limit.State)
	// Decide reports false where a share is unknown.
	Decide(counters []limit.Counter) (limit.Decision, bool)
	// GiveBack is of a decision that passed.
	GiveBack(counters []limit.Counter, d *limit.Decision)
}
