package gateway

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/libs/complaints"
	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/libs/rule"
)

// matcher finds the rules that hold for a request: *rule.Index. It appends to
// dst and takes no lock.
type matcher interface {
	Match(req *rule.Request, dst []rule.Match) []rule.Match
}

// journal keeps an event before its answer is sent: *spool.Spool. It copies
// both arguments, never blocks on I/O, and is safe for concurrent use.
type journal interface {
	AppendKeyed(key string, record []byte) (dropped int)
}

// gate is the data path: an http.Handler that takes each request through the
// stages. It shares no lock among requests.
type gate struct {
	id      string
	now     func() time.Time
	log     *slog.Logger
	metrics *metrics
	trusted []netip.Prefix

	// tables says why requests cannot be matched yet; open remembers that it
	// said nil once, since a table that was whole stays usable.
	tables func() error
	open   atomic.Bool

	keys *keyTable
	// keysAge is the time since the table of keys was last known to be whole.
	keysAge      func() time.Duration
	maxStaleness time.Duration
	// tokens is nil when no issuer is configured.
	tokens       verifier
	forwardToken bool
	answers      AnswersConfig

	grants  *grantTable
	routes  *routes
	rules   matcher
	store   limit.Store
	journal journal
	// shares and debts are for when the store is away.
	shares shares
	debts  debts
	owing  *owing
	// book holds reservations.
	book  *reserve.Book
	proxy *httputil.ReverseProxy
	cache *httpcache.Cache

	complain *complaints.Log
	stages   []stage
	inFlight atomic.Int64
}

// stage does one step of a request's way. It returns false when the request
// has been answered.
type stage func(x *exchange) bool

// prepare ties the stages together; the other fields are set before.
func (g *gate) prepare(transport http.RoundTripper) {
	g.complain = complaints.New(g.log, g.now)
	g.proxy = g.newProxy(&cacheTransport{cache: g.cache, next: transport})
	g.stages = []stage{g.admit, g.proxied, g.identify, g.match, g.cacheLookup, g.decide, g.cut, g.cached, g.forward}
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.inFlight.Add(1)
	x := newExchange(w, r, g.now())
	defer g.leave(x)
	for _, s := range g.stages {
		if !s(x) {
			return
		}
	}
}

// leave ends an exchange, also one that panicked: what was decided is recorded.
func (g *gate) leave(x *exchange) {
	if x.decided && !x.recorded {
		g.conclude(x, http.StatusInternalServerError, rule.Unanswered)
		g.record(x, http.StatusInternalServerError)
	}
	g.repay(x, true)
	x.free()
	g.inFlight.Add(-1)
}

// admit lets nothing through that cannot be matched: before the tables are
// whole every rule would seem absent.
func (g *gate) admit(x *exchange) bool {
	if g.open.Load() {
		return true
	}
	if err := g.tables(); err != nil {
		return g.refuseForNow(x, refusedNotReady, "The gate has not read its rules yet.")
	}
	g.open.Store(true)
	return true
}

// refuse answers a request that no decision is made on.
func (g *gate) refuse(x *exchange, why refusal, p *problem) bool {
	g.metrics.refused[why].Inc()
	if p.kind == "" {
		p.kind = problemNone
	}
	x.scratch = p.write(x.w, x.scratch)
	return false
}

// refuseForNow answers 503 to a request that no decision is made on.
func (g *gate) refuseForNow(x *exchange, why refusal, detail string) bool {
	x.w.Header().Set("Retry-After", shortWait())
	return g.refuse(x, why, reducedCapacity(detail))
}

func reducedCapacity(detail string) *problem {
	return &problem{kind: problemReducedCapacity, status: http.StatusServiceUnavailable, title: "Temporarily reduced capacity", detail: detail}
}

// shortWait is a Retry-After of 1 to 3 seconds: clients that were refused
// together shall not come back together.
func shortWait() string {
	return strconv.Itoa(1 + rand.IntN(3)) //nolint:gosec // spreads load, guards nothing
}
