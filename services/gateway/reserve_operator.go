package gateway

import (
	"errors"
	"net/http"

	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// releasePattern is served below /debug/<module>/ and at the admin port's root.
const releasePattern = "POST /v1/reservations/{tenant}/{id}/release"

// releaser releases any tenant's reservations for operators: of a client that is gone, say.
type releaser struct {
	gate      *gate
	operators identify.Operators
}

// ServeHTTP implements http.Handler. It answers as the tenant's own release does.
func (x *releaser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operator, ok := x.operators.Admit(r)
	if !ok {
		identify.RefuseOperator(w, "gateway.reservations.tokens")
		return
	}
	tenant, id := r.PathValue("tenant"), r.PathValue("id")
	var found reserve.Reservation
	var repeated bool
	err := reserve.ErrUnknown
	if reserve.ValidID(id) {
		found, repeated, err = x.gate.book.Release(r.Context(), reserve.Caller{Tenant: tenant, Operator: true}, id)
	}
	if err == nil && !repeated {
		x.gate.log.InfoContext(r.Context(), "an operator released a reservation", "operator", operator, "tenant", tenant, "id", id)
	}
	e := &exchange{w: w, r: r, start: x.gate.now()}
	if errors.Is(err, reserve.ErrUnknown) {
		x.gate.refuse(e, reject.Reservation, &reject.Problem{Status: http.StatusNotFound, Title: "No such reservation", Detail: "There is no reservation " + id + " of tenant " + tenant + ", or it ended long ago."})
		return
	}
	x.gate.ended(e, id, reservationReleased, found, repeated, err)
}
