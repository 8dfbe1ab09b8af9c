package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/event"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// own answers what is asked of the gate itself.
func (g *gate) own(x *exchange, path string) bool {
	rest, ok := strings.CutPrefix(path, reservationsPath)
	id, act, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	switch {
	case !ok || rest != "" && rest[0] != '/':
	case rest == "":
		return g.only(x, g.reserve, http.MethodPost)
	case !reserve.ValidID(id):
	case act == "commit":
		return g.only(x, func(x *exchange) bool { return g.commit(x, id) }, http.MethodPost)
	case act == "release":
		return g.only(x, func(x *exchange) bool { return g.release(x, id) }, http.MethodPost)
	case act == "" && !strings.HasSuffix(rest, "/"):
		return g.only(x, func(x *exchange) bool {
			if x.r.Method == http.MethodDelete {
				return g.release(x, id)
			}
			return g.tell(x, id)
		}, http.MethodGet, http.MethodHead, http.MethodDelete)
	}
	return g.refuse(x, reject.Reservation, &reject.Problem{Status: http.StatusNotFound, Title: "Not found", Detail: "The gate has nothing at this path."})
}

// only lets the methods in that a path takes, of a tenant.
func (g *gate) only(x *exchange, do func(*exchange) bool, methods ...string) bool {
	if !slices.Contains(methods, x.r.Method) {
		takes := strings.Join(methods, ", ")
		return g.reject(x, &reject.Rejection{Reason: reject.Reservation, Allow: takes, Problem: reject.Problem{
			Status: http.StatusMethodNotAllowed, Title: "Method not allowed", Detail: "This path takes " + takes + ".",
		}})
	}
	if x.caller.Tenant == "" {
		return g.reject(x, &reject.Rejection{Reason: reject.KeyRequired, Challenge: reject.AnyBearer, Problem: reject.Problem{
			Status: http.StatusUnauthorized, Title: "Identity required", Detail: "A reservation belongs to a tenant: send an API key or a token.",
		}})
	}
	return do(x)
}

// reserve charges what a request would be charged, ahead of work whose cost is
// known only afterwards, and forwards nothing.
func (g *gate) reserve(x *exchange) bool {
	w, ok := g.readWish(x)
	if !ok || !g.enter(x) {
		return false
	}
	x.reservation = w.ID
	x.endpoint = x.service.Ask(&x.req, &x.caller.Identity, x.method, x.path)
	x.req.Now, x.req.Cost = x.start, *w.Cost
	x.matches = g.rules.Match(&x.req, x.matches)
	x.charges = g.charger.New(x.start, x.req.Cost, x.matches)
	if !x.charges.Prepare() {
		return g.denyReservation(x)
	}
	if x.charges.Held() {
		// The store does not know yet how much it has left.
		return g.notReserved(x, limit.ErrUnavailable)
	}
	made, err := g.book.Reserve(context.Background(), x.reservationRecord(w), w.ttl, x.charges.Counters, func(m reserve.Made) { g.recordReservation(x, &m) })
	switch {
	case err != nil:
		return g.notReserved(x, err)
	case made.Repeated:
		g.metrics.reservations[reservationRepeated].Inc()
		return g.answerReservation(x, http.StatusCreated, reserve.ChargeID(made.Record), &made.Reservation)
	case !made.Decision.Allowed:
		x.judgeReservation(&made)
		return g.denyReservation(x)
	}
	g.metrics.reservations[reservationReserved].Inc()
	return g.answerReservation(x, http.StatusCreated, x.id, &made.Reservation)
}

// reservationRecord is what is charged and whose it is; the counters are filled
// in by the book.
func (x *exchange) reservationRecord(w *wish) reserve.Record {
	r := reserve.Record{
		ID: w.ID, Tenant: x.caller.Tenant, User: x.caller.User, Application: x.caller.Application,
		Service: x.service.Name, Endpoint: event.Clip(x.path, event.MaxPath), Method: event.Clip(x.method, event.MaxMethod),
		Cost: x.charges.Cost, MaxCost: maxReserved(x.service),
	}
	if x.caller.Key != nil {
		r.APIKeyHash = x.caller.Key.Label
		if slices.ContainsFunc(x.charges.Matches, func(m rule.Match) bool { return m.Rule.CountsKeys() }) {
			r.APIKey = x.caller.Key.ID
		}
	}
	r.Request = w.fingerprint(x, r.APIKey)
	if x.endpoint != nil {
		r.Endpoint = x.endpoint.Path
	}
	for i := range x.charges.Matches {
		m := &x.charges.Matches[i]
		r.Charges = append(r.Charges, reserve.Charge{
			Rule: m.Rule.ID, Metric: m.Rule.Metric, Own: m.Cost(0) == m.Cost(1), Shadow: m.Rule.Shadow, Thresholds: m.Rule.Thresholds,
		})
	}
	return r
}

// judgeReservation turns the states of those counters that were asked into the
// verdict.
func (x *exchange) judgeReservation(m *reserve.Made) {
	q := x.charges
	matches, counters, d := q.Matches[:0:0], q.Counters[:0:0], m.Decision
	d.States = nil
	for i, st := range m.Decision.States {
		if st.Key != "" {
			matches, counters, d.States = append(matches, q.Matches[i]), append(counters, q.Counters[i]), append(d.States, st)
		}
	}
	q.Judge(matches, counters, d)
}

// recordReservation writes the event of a reservation that was charged. Its id
// and time follow from the reservation, so that whoever has to tell of it once
// more tells the same.
func (g *gate) recordReservation(x *exchange, m *reserve.Made) {
	x.judgeReservation(m)
	x.charges.JudgeShadows()
	x.ownTime = g.now().Sub(x.start)
	x.reservationState = stateOf(m.Kept())
	x.decided, x.id, x.start = true, reserve.ChargeID(m.Record), m.ReservedAt()
	g.record(x, http.StatusCreated)
}

// denyReservation answers what may not be reserved, as a request would be.
func (g *gate) denyReservation(x *exchange) bool {
	x.decided, x.id = true, event.NewID(x.start)
	x.charges.JudgeShadows()
	x.ownTime = g.now().Sub(x.start)
	g.metrics.reservations[reservationDenied].Inc()
	return g.cut(x)
}

var lossOfReservations = &charge.Loss{Reason: charge.StoreUnavailable, Detail: "The counters cannot be reached; nothing can be reserved without them."}

// notReserved answers why there is no reservation. It needs its counters,
// whatever onStoreLoss says: nobody could find it again otherwise.
func (g *gate) notReserved(x *exchange, err error) bool {
	var ended *reserve.EndedError
	switch {
	case errors.As(err, &ended):
		return g.refuseEnded(x, ended)
	case errors.Is(err, reserve.ErrAnother):
		return g.refuse(x, reject.Reservation, &reject.Problem{
			Type: reject.ReservationOther, Status: http.StatusUnprocessableEntity, Title: "Another request's id",
			Detail: "id: the reservation " + x.reservation + " was made by a request with another body, or of another user or application; use an id once.",
		})
	case errors.Is(err, reserve.ErrTooMany):
		return g.refuseFull(x)
	}
	why := lossOfReservations
	switch {
	case errors.Is(err, limit.ErrCounterBroken):
		why = &charge.Loss{Reason: charge.CounterBroken, Detail: "A counter holds something else; nothing can be reserved."}
	case errors.Is(err, limit.ErrRestoring):
		why = &charge.Loss{Reason: charge.Restoring, Detail: "The quotas are being restored; nothing can be reserved for some seconds."}
	}
	if x.charges.DenyUnentitled() {
		return g.denyReservation(x) // no counter could change that
	}
	g.complain.Say(slog.LevelWarn, "a reservation could not be made", "error", err)
	x.charges.Verdict = charge.Verdict{Decision: usage.DecisionDeny, Outcome: charge.Error, Status: http.StatusServiceUnavailable, Reason: why.Reason, Loss: why}
	return g.denyReservation(x)
}

// refuseFull answers a tenant that has as many open as it may: no rule denied it,
// nothing was charged, and the same wish may be had a moment later.
func (g *gate) refuseFull(x *exchange) bool {
	g.metrics.reservations[reservationFull].Inc()
	return g.reject(x, &reject.Rejection{Reason: reject.Reservation, Retry: true, Problem: reject.Problem{
		Type: reject.ReservationsFull, Status: http.StatusTooManyRequests, Title: "Too many open reservations",
		Detail: fmt.Sprintf("The tenant has %d reservations open, as many as it may: commit or release some, or wait until they expire.", g.book.MaxOpen()),
	}})
}
