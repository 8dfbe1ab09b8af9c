package gateway

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/sampledlog"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// matcher finds the rules that hold for a request: *rule.Index. It appends to
// dst and takes no lock.
type matcher interface {
	Match(req *rule.Request, dst []rule.Match) []rule.Match
}

// eventLog keeps an event before its answer is sent: *spool.Spool. It copies
// both arguments, never blocks on I/O, and is safe for concurrent use.
type eventLog interface {
	AppendKeyed(key string, record []byte) (dropped int)
}

// gate is the data path: an http.Handler that takes each request through the
// stages. It shares no lock among requests.
type gate struct {
	id      string
	now     func() time.Time
	log     *slog.Logger
	metrics *metrics

	// tables says why requests cannot be matched yet; open remembers that it
	// said nil once, since a table that was whole stays usable.
	tables func() error
	open   atomic.Bool

	identifier identify.Identifier
	admission  routing.Admission
	// forwardToken says whether services see a token that proved the identity.
	forwardToken bool
	answers      AnswersConfig

	grants  *grantTable
	routes  *routing.Table
	rules   matcher
	charger charge.Charger
	events  eventLog
	// book holds reservations.
	book  *reserve.Book
	proxy *proxy.Proxy
	cache *httpcache.Cache

	complain *sampledlog.Log
	stages   []stage
	inFlight atomic.Int64
}

// refuse answers a request on which no decision is made.
func (g *gate) refuse(x *exchange, why reject.Reason, p *reject.Problem) bool {
	return g.reject(x, &reject.Rejection{Reason: why, Problem: *p})
}

// refuseForNow answers 503 to a request on which no decision is made.
func (g *gate) refuseForNow(x *exchange, why reject.Reason, detail string) bool {
	return g.reject(x, reject.Busy(why, detail))
}

// reject answers a request on which no decision is made.
func (g *gate) reject(x *exchange, r *reject.Rejection) bool {
	g.metrics.refused[r.Reason].Inc()
	r.Write(x.w)
	return false
}
