package gateway

import (
	"net/http"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/libs/rule"
)

// match finds the service, the endpoint and the rules that cover the request.
func (g *gate) match(x *exchange) bool {
	escaped := x.r.URL.EscapedPath()
	if escaped == "" && x.r.Method != http.MethodConnect {
		escaped = "/" // GET http://host means the root (RFC 9112, section 3.2.1)
	}
	path, err := route.CleanPath(escaped)
	if err != nil {
		return g.refuse(x, refusedBadPath, &problem{status: http.StatusBadRequest, title: "Bad path", detail: err.Error()})
	}
	x.path, x.cost = path, 1
	x.service = g.routes.find(path)
	switch {
	case x.service == nil:
		return g.refuse(x, refusedNoService, &problem{status: http.StatusNotFound, title: "No such service", detail: "No service's prefix covers the path."})
	case !g.enter(x):
		return false
	case x.service.weights == 0:
		// Nothing to forward to: to charge for that would be wrong.
		return g.refuseForNow(x, refusedNoUpstream, "The service takes no requests at present.")
	}
	x.req = rule.Request{
		TenantID: x.who.tenant, UserID: x.who.user, ApplicationID: x.who.application,
		Service: x.service.name, Method: x.r.Method, Path: path, Now: x.start,
	}
	if x.who.key != nil {
		x.req.APIKeyID = x.who.key.id
	}
	if x.endpoint = x.service.find(x.r.Method, path); x.endpoint != nil {
		x.cost, x.req.Endpoint = x.endpoint.cost, x.endpoint.text
	}
	if x.costIsCallers {
		x.cost = x.callersCost
	}
	x.req.Cost = x.cost
	x.matches = g.rules.Match(&x.req, x.matches)
	return true
}
