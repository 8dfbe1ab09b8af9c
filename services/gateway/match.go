package gateway

import (
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

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
