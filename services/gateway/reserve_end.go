package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// commit ends a reservation at what the work cost.
func (g *gate) commit(x *exchange, id string) bool {
	var body struct {
		Cost *int64 `json:"cost"`
	}
	if !g.readBody(x, &body) {
		return false
	}
	switch {
	case body.Cost == nil:
		return g.refuseWish(x, []string{"cost: must be there: how many units the work cost"})
	case *body.Cost < 0 || *body.Cost > maxReserved(nil):
		return g.refuseWish(x, []string{fmt.Sprintf("cost: must be a whole number of units from 0 to %d", maxReserved(nil))})
	}
	r, repeated, err := g.book.Commit(context.Background(), reserveCaller(&x.caller.Identity), id, *body.Cost)
	return g.ended(x, id, reservationCommitted, r, repeated, err)
}

// reserveCaller is whose reservations a caller may end and see.
func reserveCaller(i *identify.Identity) reserve.Caller {
	c := reserve.Caller{Tenant: i.Tenant, User: i.User, Application: i.Application}
	if i.Key != nil {
		c.APIKey = i.Key.ID
	}
	return c
}

// release ends a reservation of which nothing was used.
func (g *gate) release(x *exchange, id string) bool {
	r, repeated, err := g.book.Release(context.Background(), reserveCaller(&x.caller.Identity), id)
	return g.ended(x, id, reservationReleased, r, repeated, err)
}

// tell says how a reservation stands.
func (g *gate) tell(x *exchange, id string) bool {
	r, err := g.book.Get(context.Background(), reserveCaller(&x.caller.Identity), id)
	if err != nil {
		return g.notEnded(x, id, r, err)
	}
	return g.answerReservation(x, http.StatusOK, "", &r)
}

func (g *gate) ended(x *exchange, id string, how reservation, r reserve.Reservation, repeated bool, err error) bool {
	if err != nil {
		return g.notEnded(x, id, r, err)
	}
	if repeated {
		how = reservationRepeated
	}
	g.metrics.reservations[how].Inc()
	return g.answerReservation(x, http.StatusOK, "", &r)
}

// notEnded answers why a reservation is not what was asked for.
func (g *gate) notEnded(x *exchange, id string, r reserve.Reservation, err error) bool {
	var ended *reserve.EndedError
	switch {
	case errors.As(err, &ended):
		return g.refuseEnded(x, ended)
	case errors.Is(err, reserve.ErrUnknown):
		return g.refuse(x, reject.Reservation, &reject.Problem{Status: http.StatusNotFound, Title: "No such reservation", Detail: "There is no reservation " + id + " of this tenant, user and application, or it ended long ago."})
	case errors.Is(err, reserve.ErrTooMuch):
		return g.refuseWish(x, []string{fmt.Sprintf("cost: must be at most %d, the service's maxCost", max(r.MaxCost, r.Cost))})
	case !errors.Is(err, limit.ErrUnavailable):
		g.complain.Say(slog.LevelError, "a reservation cannot be read or ended", "id", id, "error", err)
	}
	return g.refuseForNow(x, reject.Reservation, "The counters cannot be reached; ask once more, which does no harm.")
}

// refuseEnded answers who comes too late.
func (g *gate) refuseEnded(x *exchange, e *reserve.EndedError) bool {
	detail := "The reservation " + e.ID + " was "
	switch e.State {
	case reserve.Committed:
		detail += "committed at a cost of " + strconv.FormatInt(e.Committed, 10)
	case reserve.Expired:
		detail = "The reservation " + e.ID + " expired"
	default:
		detail += "released"
	}
	detail += " at " + e.EndedAt.Format(time.RFC3339) + "."
	return g.refuse(x, reject.Reservation, &reject.Problem{Type: reject.ReservationEnded, Status: http.StatusConflict, Title: "Reservation has ended", Detail: detail})
}
