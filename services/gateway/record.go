package gateway

import (
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// record appends the decision's event to the journal, once, before the answer
// is sent. status is what the client is about to be answered.
func (g *gate) record(x *exchange, status int) {
	if x.recorded {
		return
	}
	x.recorded = true
	g.metrics.decisions[x.verdict.outcome].Inc()
	g.metrics.latency.Observe(x.ownTime.Seconds())
	e := g.event(x, status)
	x.scratch = appendEvent(x.scratch[:0], &e)
	// Drops are the spool's to count.
	_ = g.journal.AppendKeyed(x.caller.Tenant, x.scratch)
}

// Bounds, in bytes, of what a client can make an event carry: with paths of
// 64 KB few requests would fill the spool.
const (
	maxEventPath   = 1024
	maxEventMethod = 32
)

// clip shortens ASCII text (a cleaned path, a method) to n bytes.
func clip(s string, n int) string { return s[:min(len(s), n)] }

func (g *gate) event(x *exchange, status int) usage.Event {
	e := usage.Event{
		ID: x.id, TS: x.start,
		TenantID: x.caller.Tenant, UserID: x.caller.User, ApplicationID: x.caller.Application,
		Service: x.service.Name, Endpoint: clip(x.path, maxEventPath), Method: clip(x.method, maxEventMethod),
		Decision: x.verdict.decision, StatusCode: status, Reason: x.verdict.reason,
		Cached: x.cachedAs(), Reservation: x.reservation, ReservationState: x.reservationState, Cost: x.cost, LatencyMs: float64(x.ownTime) / float64(time.Millisecond),
		Charges: g.chargesMade(x), Gateway: g.id,
	}
	if x.caller.Key != nil {
		e.APIKeyHash = x.caller.Key.Label
	}
	if x.endpoint != nil {
		e.Endpoint = x.endpoint.Path
	}
	if r := x.verdict.decisive; r != nil {
		e.RuleID, e.Algo = r.ID, r.AlgorithmName()
	}
	return e
}

// chargesMade lists the quota counters that were charged, with their totals
// from the same atomic step. A denied request was charged nothing by enforced
// rules; each shadow rule charges what it would let pass itself.
func (g *gate) chargesMade(x *exchange) []usage.Charge {
	if x.verdict.decision != usage.DecisionDeny {
		for i := range x.judged {
			x.addCharge(&x.judged[i])
		}
		g.addOwed(x)
	}
	for i := range x.shadows {
		if j := &x.shadows[i]; j.state.Allowed {
			x.addCharge(j)
		}
	}
	return x.charges
}

func (x *exchange) addCharge(j *judgement) {
	if j.shared || !j.rule.Algorithm.Quota() || j.cost == 0 && j.corrected == 0 {
		return
	}
	c := usage.Charge{
		Counter: j.state.Key, Metric: j.rule.Metric, Amount: j.cost,
		Consumed: j.state.Consumed, Refunded: j.state.Refunded, Forfeited: j.state.Forfeited,
		Thresholds: j.rule.Thresholds,
	}
	if j.carries {
		c.Carried = &j.state.Carried
	}
	if !j.state.Unlimited {
		c.Limit = &j.state.Limit
	}
	x.charges = append(x.charges, c)
}

// cachedAs is what the event says of where the response came from, empty for one
// that the service gave to this request.
func (x *exchange) cachedAs() string {
	if x.forwarded.Lookup == nil {
		return ""
	}
	switch x.forwarded.Lookup.Served() {
	case cache.HitL1, cache.HitL2:
		return usage.CachedHit
	case cache.Stale:
		return usage.CachedStale
	case cache.Coalesced:
		return usage.CachedCoalesced
	}
	return ""
}
