package gateway

import (
	"context"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/rule"
)

// look finds the answer before the decision where a rule asks whether there is
// one: countCached false charges no answer that is there. What was found is
// what will be served, so that nothing is uncharged that the service must be
// asked for. A rule that denies whatever its counter says does so all the same.
func (g *gate) look(x *exchange) bool {
	if !slices.ContainsFunc(x.matches, spares) {
		return true
	}
	if x.plan = g.plan(x); x.plan == nil || x.plan.bypass != "" {
		return true
	}
	x.plan.see(g.asForwarded(x), x.who.token)
	if r, ok := x.plan.peek(x.r.Context()); ok {
		x.plan.found = &r
		x.matches = slices.DeleteFunc(x.matches, spares)
	}
	return true
}

func spares(m rule.Match) bool { return m.Rule.FreeCached && !m.MissingDeny && !m.GrantsNothing() }

// cached prepares the cache for a request that may pass; cacheTransport obeys.
func (g *gate) cached(x *exchange) bool {
	if x.plan == nil {
		x.plan = g.plan(x)
	}
	return true
}

// asForwarded is the request's header as forward would send it.
func (g *gate) asForwarded(x *exchange) http.Header {
	out := x.r.Clone(context.WithValue(x.r.Context(), exchangeKey{}, x))
	dropHopByHop(out.Header)
	for _, name := range [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		out.Header.Del(name)
	}
	g.rewrite(&httputil.ProxyRequest{In: x.r, Out: out})
	return out.Header
}

// hopByHop fields belong to one connection (RFC 9110, section 7.6.1), or to one
// proxy, and are neither forwarded nor stored.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func dropHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.Trim(name, " \t"))
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// peek is the stored answer that the request may have without a load.
func (p *cachePlan) peek(ctx context.Context) (r cache.Result[*storedAnswer], ok bool) {
	r, ok = p.choose(p.key, func(key string) (cache.Result[*storedAnswer], bool) { return p.family.Peek(ctx, key) })
	if ok && p.wants.take(&r) {
		return r, true
	}
	return p.others()
}

// choose finds the answer for the request among those of a resource, from the
// one under its key on.
func (p *cachePlan) choose(at string, look func(key string) (cache.Result[*storedAnswer], bool)) (r cache.Result[*storedAnswer], ok bool) {
	key := at
	for range maxVariants {
		if r, ok = look(key); !ok || !p.family.purges.valid(p.family.service, r.Value) {
			return r, false
		}
		if r.Value.matches(p.header) {
			return r, true
		}
		key = r.Value.variant(at, p.header)
	}
	return r, false
}

// others is the answer that is kept for requests with an identity where this one
// has none, or the other way round, and that is for everybody by its own word
// (RFC 9111, section 3.5). It is taken where this process holds it, fresh, and
// nothing under the request's own key: to look for it any further would cost
// every miss, and to load it twice is no harm.
func (p *cachePlan) others() (r cache.Result[*storedAnswer], ok bool) {
	if p.policy.shared || p.wants.validated {
		return r, false
	}
	if _, own := p.choose(p.key, p.family.Near); own {
		return r, false
	}
	r, ok = p.choose(p.resource.key(!p.authorized), p.family.Near)
	return r, ok && p.wants.take(&r) && forEverybody(cacheControl(r.Value.header))
}

// maxVariants bounds the way from a resource to the answer for one request: an
// answer that names other headers than the one before leads on.
const maxVariants = 4
