package gateway

import (
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/event"
)

// record appends the decision's event to the journal, once, before the answer
// is sent. status is what the client is about to be answered.
func (g *gate) record(x *exchange, status int) {
	if x.recorded {
		return
	}
	x.recorded = true
	g.metrics.decisions[x.charges.Verdict.Outcome].Inc()
	g.metrics.latency.Observe(x.ownTime.Seconds())
	e := g.usageEvent(x, status)
	x.scratch = event.Append(x.scratch[:0], &e)
	// Drops are the spool's to count.
	_ = g.events.AppendKeyed(x.caller.Tenant, x.scratch)
}

func (g *gate) usageEvent(x *exchange, status int) usage.Event {
	e := usage.Event{
		ID: x.id, TS: x.start,
		TenantID: x.caller.Tenant, UserID: x.caller.User, ApplicationID: x.caller.Application,
		Service: x.service.Name, Endpoint: event.Clip(x.path, event.MaxPath), Method: event.Clip(x.method, event.MaxMethod),
		Decision: x.charges.Verdict.Decision, StatusCode: status, Reason: x.charges.Verdict.Reason,
		Cached: x.cachedAs(), Reservation: x.reservation, ReservationState: x.reservationState, Cost: x.charges.Cost, LatencyMs: float64(x.ownTime) / float64(time.Millisecond),
		Charges: x.charges.Events(), Gateway: g.id,
	}
	if x.caller.Key != nil {
		e.APIKeyHash = x.caller.Key.Label
	}
	if x.endpoint != nil {
		e.Endpoint = x.endpoint.Path
	}
	if r := x.charges.Verdict.Decisive; r != nil {
		e.RuleID, e.Algo = r.ID, r.AlgorithmName()
	}
	return e
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
