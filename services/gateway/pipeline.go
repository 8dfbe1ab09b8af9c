package gateway

import (
	"net/http"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/sampledlog"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/event"
	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// stage does one step of a request's way. It returns false when the request
// has been answered.
type stage func(x *exchange) bool

// prepare ties the stages together; the other fields are set before.
func (g *gate) prepare(transport http.RoundTripper) {
	g.complain = sampledlog.New(g.log, g.now)
	g.charger.Counter, g.charger.Metrics, g.charger.Complain = g.counter, &g.metrics.charging, g.complain
	g.proxy = proxy.New(proxy.Options{
		Transport: transport, Cache: g.cache, ForwardToken: g.forwardToken, Log: g.log, Complain: g.complain, Errors: g.metrics.upstreamErrors,
	})
	g.stages = []stage{g.admit, g.identify, g.match, g.cacheLookup, g.decide, g.cut, g.forward}
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.inFlight.Add(1)
	x := newExchange(w, r, g.now())
	x.gate = g
	defer g.leave(x)
	for _, s := range g.stages {
		if !s(x) {
			return
		}
	}
}

// identify finds out whose request it is.
func (g *gate) identify(x *exchange) bool {
	rejected := routing.CheckTarget(x.r)
	if rejected == nil {
		x.caller, rejected = g.identifier.Identify(x.r, x.start)
	}
	return rejected == nil || g.reject(x, rejected)
}

// match finds the service, the endpoint and the rules that cover the request. A
// request to the gate itself is answered here.
func (g *gate) match(x *exchange) bool {
	path, rejected := routing.CleanPath(x.r)
	if rejected != nil {
		return g.reject(x, rejected)
	}
	if routing.IsOwn(path) {
		return g.own(x, path)
	}
	x.path, x.method = path, x.r.Method
	x.service = g.routes.Find(path)
	switch {
	case x.service == nil:
		return g.reject(x, routing.NoService("No service's prefix covers the path."))
	case !g.enter(x):
		return false
	}
	x.endpoint = x.service.Ask(&x.req, &x.caller.Identity, x.r.Method, path)
	if x.req.Now = x.start; x.caller.CostStated {
		x.req.Cost = x.caller.Cost
	}
	x.matches = g.rules.Match(&x.req, x.matches)
	return true
}

// enter rejects a request that its service does not admit.
func (g *gate) enter(x *exchange) bool {
	rejected := g.admission.Check(x.service, &x.caller.Identity)
	return rejected == nil || g.reject(x, rejected)
}

// decide charges the request and comes to a verdict. From here on it has an id and
// ends in exactly one event.
func (g *gate) decide(x *exchange) bool {
	x.decided, x.id = true, event.NewID(x.start)
	x.charges = g.charger.New(x.start, x.req.Cost, x.matches)
	x.charges.Begin()
	x.ownTime = g.now().Sub(x.start)
	return true
}

// leave ends an exchange, also one that panicked: what was decided is recorded.
func (g *gate) leave(x *exchange) {
	if x.decided && !x.recorded {
		x.finish(http.StatusInternalServerError, rule.Unanswered, charge.AsBegun)
		g.record(x, http.StatusInternalServerError)
	}
	x.free()
	g.inFlight.Add(-1)
}

// admit rejects requests until the tables are complete: before that every rule
// would seem absent.
func (g *gate) admit(x *exchange) bool {
	if g.open.Load() {
		return true
	}
	if err := g.tables(); err != nil {
		return g.refuseForNow(x, reject.NotReady, "The gate has not read its rules yet.")
	}
	g.open.Store(true)
	return true
}

// cut rejects a request that the decision does not let pass. The event is recorded
// first.
func (g *gate) cut(x *exchange) bool {
	if x.charges.Verdict.Status == 0 {
		return true
	}
	g.record(x, x.charges.Verdict.Status)
	g.setHeaders(x, x.w.Header())
	respond.Reject(x.w, x.id, x.charges, g.answers.RetryAfterJitter)
	return false
}

// setHeaders writes what was decided to a response's header.
func (g *gate) setHeaders(x *exchange, h http.Header) {
	respond.SetHeaders(h, x.id, x.charges, g.tellsLegacy(x))
}

// tellsLegacy: clients of the service get X-RateLimit-* too.
func (g *gate) tellsLegacy(x *exchange) bool {
	return g.answers.LegacyHeaders || x.service.LegacyHeaders
}
