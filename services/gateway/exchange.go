package gateway

import (
	"net/http"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/usage"
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
	cost             int64

	req      rule.Request
	matches  []rule.Match
	counters []limit.Counter
	// judged are the counters' states, tightest first; empty when nothing was
	// counted or the store could not be asked.
	judged []judgement
	// shadows are the states of shadow rules' counters, in the same order. They
	// are reported and decide nothing: no client hears of them.
	shadows []judgement
	// shadowMissing is a shadow rule that would deny for want of an identity.
	shadowMissing *rule.Compiled
	// judgedAt is the store's clock at that moment.
	judgedAt time.Time

	// held is what the request may have back if it fails, and in the end what it had.
	held refundable

	// uncounted are the rules that let it pass without their counters.
	uncounted []rule.Match
	// outage: the store could not charge them. It is false where they go by shares
	// until the journal is settled.
	outage bool
	// taken is what it has had of this gateway's shares.
	taken []taken

	decided  bool
	recorded bool
	verdict  verdict
	// ownTime is the gate's time from the request to its decision.
	ownTime time.Duration
	// id is the decision's, "" before there is one.
	id      string
	charges []usage.Charge
	scratch []byte

	// lookup is what the cache does for the request, nil where the route is not cached.
	lookup *httpcache.Lookup

	// forwarded is the request on its way to the service.
	forwarded proxy.Request
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func newExchange(w http.ResponseWriter, r *http.Request, start time.Time) *exchange {
	x, _ := exchanges.Get().(*exchange)
	*x = exchange{
		w: w, r: r, start: start,
		matches: x.matches[:0], counters: x.counters[:0], judged: x.judged[:0], shadows: x.shadows[:0], uncounted: x.uncounted[:0], taken: x.taken[:0],
		charges: x.charges[:0], scratch: x.scratch[:0], held: x.held.emptied(),
	}
	return x
}

// free returns x to the pool. It holds no reference to a request afterwards,
// or one quiet minute would keep a thousand dead requests alive.
func (x *exchange) free() {
	clear(x.matches[:cap(x.matches)])
	clear(x.judged[:cap(x.judged)])
	clear(x.shadows[:cap(x.shadows)])
	clear(x.counters[:cap(x.counters)])
	clear(x.charges[:cap(x.charges)])
	clear(x.uncounted[:cap(x.uncounted)])
	clear(x.taken[:cap(x.taken)])
	clear(x.held.rules[:cap(x.held.rules)])
	*x = exchange{
		matches: x.matches[:0], counters: x.counters[:0], judged: x.judged[:0], shadows: x.shadows[:0], uncounted: x.uncounted[:0], taken: x.taken[:0],
		charges: x.charges[:0], scratch: x.scratch[:0], held: x.held.emptied(),
	}
	exchanges.Put(x)
}
