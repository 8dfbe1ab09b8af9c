package gateway

import (
	"context"
	"net/http"
	"net/http/httputil"
	"slices"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// cacheLookup finds a stored response before the decision where a matched rule has
// countCached false: that rule then does not charge. The response that is found is
// the one that is served, so that no request to the service goes uncharged. A rule
// that denies whatever its counter says denies all the same.
func (g *gate) cacheLookup(x *exchange) bool {
	if !slices.ContainsFunc(x.matches, freeWhenCached) {
		return true
	}
	x.lookup = g.lookup(x)
	if x.lookup != nil && !x.lookup.Bypassed() && x.lookup.Find(x.r.Context(), g.asForwarded(x)) {
		x.matches = slices.DeleteFunc(x.matches, freeWhenCached)
	}
	return true
}

func freeWhenCached(m rule.Match) bool {
	return m.Rule.FreeCached && !m.MissingDeny && !m.GrantsNothing()
}

// cached prepares the cache for a request that may pass; cacheTransport uses it.
func (g *gate) cached(x *exchange) bool {
	if x.lookup == nil {
		x.lookup = g.lookup(x)
	}
	return true
}

// lookup says what the cache may do for the request, nil where its route is not
// cached. The service of a shared route does not see a token either.
func (g *gate) lookup(x *exchange) *httpcache.Lookup {
	policy := x.service.cachePolicy(x.endpoint)
	if policy == nil {
		return nil
	}
	t := httpcache.Target{Family: x.service.name, Policy: policy, Path: x.path, PerCaller: x.service.costHeader}
	if token := x.who.token; token != "" {
		t.Withhold = func(h http.Header) { stripAuthorization(h, func(value string) bool { return bearer(value) == token }) }
	}
	return g.cache.Lookup(x.r, t)
}

// asForwarded is the request's header as forward sends it.
func (g *gate) asForwarded(x *exchange) http.Header {
	out := x.r.Clone(context.WithValue(x.r.Context(), exchangeKey{}, x))
	httpcache.RemoveHopByHop(out.Header)
	for _, name := range [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		out.Header.Del(name)
	}
	g.rewrite(&httputil.ProxyRequest{In: x.r, Out: out})
	return out.Header
}

// cacheTransport answers requests from the cache, or sends them by next. The proxy
// treats a stored response like one of the service.
type cacheTransport struct {
	cache *httpcache.Cache
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *cacheTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := exchangeOf(req.Context())
	if x.lookup != nil {
		return x.lookup.RoundTrip(req, t.next)
	}
	res, err := t.next.RoundTrip(req)
	if err == nil && x.service.caches() {
		t.cache.InvalidateAfter(x.r, res, x.service.name, x.path, func(path string) *httpcache.Policy {
			return x.service.cachePolicy(x.service.find(http.MethodGet, path))
		})
	}
	return res, err
}

// varyBy are the request headers, canonical, by which the exchange's route
// distinguishes responses beside those that responses name; none where it is not
// cached.
func (x *exchange) varyBy() []string {
	if x.lookup == nil {
		return nil
	}
	return x.lookup.VaryBy()
}

// cachedAs is what the event says of where the response came from, empty for one
// that the service gave to this request.
func (x *exchange) cachedAs() string {
	if x.lookup == nil {
		return ""
	}
	switch x.lookup.Served() {
	case cache.HitL1, cache.HitL2:
		return usage.CachedHit
	case cache.Stale:
		return usage.CachedStale
	case cache.Coalesced:
		return usage.CachedCoalesced
	}
	return ""
}
