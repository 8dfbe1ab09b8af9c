package gateway

import (
	"log/slog"
	"net/http"
	"slices"

	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
	"github.com/sluice-platform/sluice/services/gateway/internal/respond"
)

// cacheLookup finds a stored response before the decision where a matched rule has
// countCached false: that rule then does not charge. The response that is found is
// the one that is served, so that no request to the service goes uncharged. A rule
// that denies whatever its counter says denies all the same.
func (g *gate) cacheLookup(x *exchange) bool {
	if !slices.ContainsFunc(x.matches, freeWhenCached) {
		return true
	}
	q := g.outgoing(x)
	if q.Lookup != nil && !q.Lookup.Bypassed() && q.Lookup.Find(x.r.Context(), g.proxy.Header(x.r, q)) {
		x.matches = slices.DeleteFunc(x.matches, freeWhenCached)
	}
	return true
}

func freeWhenCached(m rule.Match) bool {
	return m.Rule.FreeCached && !m.MissingDeny && !m.GrantsNothing()
}

// forward answers the request by its service or from the cache.
func (g *gate) forward(x *exchange) bool {
	q := g.outgoing(x)
	q.LegacyHeaders = g.tellsLegacy(x) && !respond.OnlyUnlimited(x.charges.Judged)
	g.proxy.Forward(x.w, x.r, q)
	return false
}

// outgoing is the request as the proxy takes it, made once.
func (g *gate) outgoing(x *exchange) *proxy.Request {
	q := &x.forwarded
	if q.Decision == nil {
		*q = proxy.Request{Service: x.service, Path: x.path, Caller: &x.caller, Decision: x, Lookup: g.lookup(x)}
	}
	return q
}

// lookup says what the cache may do for the request, nil where its route is not
// cached. The service of a shared route does not see a token either.
func (g *gate) lookup(x *exchange) *httpcache.Lookup {
	policy := x.service.CachePolicy(x.endpoint)
	if policy == nil {
		return nil
	}
	t := httpcache.Target{Family: x.service.Name, Policy: policy, Path: x.path, PerCaller: x.service.CostHeader}
	if token := x.caller.Token; token != "" {
		t.Withhold = func(h http.Header) {
			proxy.StripAuthorization(h, func(value string) bool { return identify.Bearer(value) == token })
		}
	}
	return g.cache.Lookup(x.r, t)
}

// ID implements proxy.Decision.
func (x *exchange) ID() string { return x.id }

// Answered implements proxy.Decision: it refunds what the status refunds, corrects
// the cost of the rest by the service's word, and records the event.
func (x *exchange) Answered(status int, h http.Header) {
	x.finish(status, rule.Answered, x.gate.statedCost(x, h))
	x.gate.record(x, status)
}

// Failed implements proxy.Decision.
func (x *exchange) Failed(status int, how rule.Failure) {
	x.finish(status, how, charge.AsBegun)
	x.gate.record(x, status)
}

// finish ends the charges of a request; those of a reservation end by its commit.
func (x *exchange) finish(status int, how rule.Failure, cost int64) {
	if x.reservation == "" {
		x.charges.Finish(status, how, cost)
	}
}

// SetHeaders implements proxy.Decision.
func (x *exchange) SetHeaders(h http.Header) { x.gate.setHeaders(x, h) }

// statedCost takes the cost that the service states from its answer.
func (g *gate) statedCost(x *exchange, h http.Header) int64 {
	values := h[x.service.CostHeader]
	if len(values) == 0 {
		return charge.AsBegun
	}
	delete(h, x.service.CostHeader)
	cost, ok := identify.ParseCost(values[0])
	switch {
	case len(values) > 1 || !ok:
		g.metrics.charging.Corrections[charge.Malformed].Inc()
		return charge.AsBegun
	case cost > max(x.service.MaxCost, x.charges.Cost):
		// To charge all of it could shut the customer out for years, and part of
		// it would be as wrong: what the catalog says is all that is known.
		g.metrics.charging.Corrections[charge.TooLarge].Inc()
		g.complain.Say(slog.LevelWarn, "a service names a cost above its maxCost; the first charge stays",
			"service", x.service.Name, "cost", cost, "maxCost", x.service.MaxCost)
		return charge.AsBegun
	}
	return cost
}
