package gateway

import (
	"net/http"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// exchange is one request on its way through the stages. One goroutine owns it
// from start to end; it comes from a pool and its slices keep their capacity.
type exchange struct {
	w http.ResponseWriter
	r *http.Request

	gate  *gate
	start time.Time
	// caller is whose request it is.
	caller identify.Caller

	service  *routing.Service
	endpoint *routing.Endpoint // nil: the path is not in the catalog
	path     string            // cleaned, escaped
	method   string            // the request's own, or of a reservation the one asked for
	// reservation is the id of the one that is made, empty for requests.
	reservation      string
	reservationState *usage.ReservationState

	req     rule.Request
	matches []rule.Match
	// charges are nil before the decision.
	charges *charge.Charges

	decided  bool
	recorded bool
	// ownTime is the gate's time from the request to its decision.
	ownTime time.Duration
	// id is the decision's, "" before there is one.
	id      string
	scratch []byte

	// forwarded is the request on its way to the service.
	forwarded proxy.Request
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func newExchange(w http.ResponseWriter, r *http.Request, start time.Time) *exchange {
	x, _ := exchanges.Get().(*exchange)
	*x = exchange{
		w: w, r: r, start: start,
		matches: x.matches[:0], scratch: x.scratch[:0],
	}
	return x
}

// free returns x to the pool. It holds no reference to a request afterwards,
// or one quiet minute would keep a thousand dead requests alive.
func (x *exchange) free() {
	if x.charges != nil {
		x.charges.Free()
	}
	clear(x.matches[:cap(x.matches)])
	*x = exchange{
		matches: x.matches[:0], scratch: x.scratch[:0],
	}
	exchanges.Put(x)
}
