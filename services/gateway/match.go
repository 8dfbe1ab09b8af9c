package gateway

import (
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/libs/rule"
)

// match finds the service, the endpoint and the rules that cover the request.
// What is asked of the gate itself it answers.
func (g *gate) match(x *exchange) bool {
	escaped := x.r.URL.EscapedPath()
	if escaped == "" {
		escaped = "/" // GET http://host means the root (RFC 9112, section 3.2.1)
	}
	path, err := route.CleanPath(escaped)
	if err != nil {
		return g.refuse(x, refusedBadPath, &problem{status: http.StatusBadRequest, title: "Bad path", detail: err.Error()})
	}
	if strings.IndexByte(x.r.URL.RawQuery, ' ') >= 0 { // HTTP/2 can carry one, a request line cannot
		return g.refuse(x, refusedBadPath, &problem{status: http.StatusBadRequest, title: "Bad path", detail: "query holds a space; it is written %20"})
	}
	if isOwn(path) {
		return g.own(x, path)
	}
	x.path, x.method = path, x.r.Method
	x.service = g.routes.find(path)
	switch {
	case x.service == nil:
		return g.refuse(x, refusedNoService, &problem{status: http.StatusNotFound, title: "No such service", detail: "No service's prefix covers the path."})
	case !g.enter(x):
		return false
	}
	x.endpoint = x.who.ask(&x.req, x.service, x.r.Method, path)
	if x.req.Now = x.start; x.costIsCallers {
		x.req.Cost = x.callersCost
	}
	x.cost = x.req.Cost
	x.matches = g.rules.Match(&x.req, x.matches)
	return true
}

// ask fills the question of what holds for a request of this identity, and
// returns the endpoint it is at, nil where the catalog has none: then it costs 1.
func (i *identity) ask(req *rule.Request, s *service, method, path string) *endpoint {
	*req = rule.Request{
		TenantID: i.tenant, UserID: i.user, ApplicationID: i.application,
		Service: s.name, Method: method, Path: path, Cost: 1,
	}
	if i.key != nil {
		req.APIKeyID = i.key.id
	}
	found := s.find(method, path)
	if found != nil {
		req.Cost, req.Endpoint = found.cost, found.text
	}
	return found
}
