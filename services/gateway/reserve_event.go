package gateway

import (
	"net/http"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/event"
)

// tellReservation writes the event of a reservation's step: its end, or its making
// where the gateway that made it did not come to. It may be written more than
// once, by any gateway, with the same id, time and amounts.
func (g *gate) tellReservation(n reserve.News) {
	e := usage.Event{
		ID: n.ID, TS: n.At, TenantID: n.Tenant, UserID: n.User, ApplicationID: n.Application, APIKeyHash: n.APIKeyHash,
		Service: n.Service, Endpoint: n.Endpoint, Method: n.Method, StatusCode: http.StatusOK,
		Reservation: n.Record.ID, ReservationState: stateOf(n.Kept()), Gateway: g.id,
	}
	switch n.Step {
	case reserve.Reserved:
		e.Decision, e.StatusCode, e.Cost = usage.DecisionAllow, http.StatusCreated, n.Cost
	case reserve.Committed:
		e.Decision, e.Cost = usage.DecisionCommit, n.Committed
	case reserve.Released:
		e.Decision = usage.DecisionRelease
	default:
		e.Decision = usage.DecisionExpire
	}
	for i := range n.Amounts {
		if a := &n.Amounts[i]; a.Algorithm.Quota() {
			e.Charges = append(e.Charges, reservedCharge(n.Record, a))
		}
	}
	_ = g.events.AppendKeyed(n.Tenant, event.Append(nil, &e)) // drops are the spool's to count
}

// stateOf is what a restore needs of a reservation.
func stateOf(k reserve.Kept) *usage.ReservationState {
	s := &usage.ReservationState{Attempt: k.Attempt, State: k.Number, EndedAt: k.EndedAt, Record: string(k.Record)}
	for _, place := range k.Uncharged {
		s.Uncharged = append(s.Uncharged, int64(place))
	}
	return s
}

// reservedCharge is a step's amount with the counter's totals after it, or without
// them where they are not known: whoever keeps totals asks for them then.
func reservedCharge(r *reserve.Record, a *reserve.Amount) usage.Charge {
	if a.State == nil {
		c, err := a.Counter(r.ReservedAt())
		if err != nil { // a calendar this build does not know; its counter has the rest of the name
			return usage.Charge{Counter: a.Key, Metric: a.Metric, Amount: a.Units, Pending: true}
		}
		charge := charge.Pending(a.Metric, &c, r.ReservedAt())
		charge.Amount = a.Units
		return charge
	}
	charge := usage.Charge{
		Counter: a.State.Key, Metric: a.Metric, Amount: a.Units,
		Consumed: a.State.Consumed, Refunded: a.State.Refunded, Forfeited: a.State.Forfeited, Thresholds: a.Thresholds,
	}
	if rolls(a.Charge) {
		charge.Carried = &a.State.Carried
	}
	if !a.State.Unlimited {
		charge.Limit = &a.State.Limit
	}
	return charge
}

func rolls(c *reserve.Charge) bool {
	n := limit.Counter{Algorithm: c.Algorithm, Prepaid: c.Prepaid, Rollover: c.Rollover}
	return n.Rolls() && c.Calendar != "never"
}
