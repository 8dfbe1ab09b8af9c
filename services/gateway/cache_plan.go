package gateway

import (
	"math"
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// cachePlan is what the cache may do for one request. It outlives the exchange:
// a load goes on when its caller has gone.
type cachePlan struct {
	cache    *answerCache
	family   *cacheFamily
	policy   *cachePolicy
	resource resource
	key      string
	// authorized: the service sees an identity or Authorization.
	authorized bool
	// header is the request's as the service sees it.
	header http.Header
	wants  wants
	// bypass says why the request goes to the service as it is; a reason of
	// Cache-Status (RFC 9211, section 2.2).
	bypass string
	// costHeader of the service, which stored answers do not have.
	costHeader string
	// found is the answer that was looked up before the decision, nil if none.
	found *cache.Result[*storedAnswer]
}

// wants are the request's own directives (RFC 9111, section 5.2.1).
type wants struct {
	validated    bool // no-cache
	onlyIfCached bool
	maxAge       time.Duration // negative: any
	minFresh     time.Duration
	// maxStale is how stale it may be, if it is all there is; 0 is not at all.
	maxStale time.Duration
}

func wantsOf(cc directives, h http.Header) wants {
	w := wants{maxAge: -1, validated: cc.has("no-cache") || !cc.some() && hasPragmaNoCache(h), onlyIfCached: cc.has("only-if-cached")}
	if t, ok := cc.seconds("max-age"); ok {
		w.maxAge = t
	}
	w.minFresh, _ = cc.seconds("min-fresh")
	switch value, ok := cc.get("max-stale"); {
	case !ok:
	case value == "":
		w.maxStale = math.MaxInt64 // however stale
	default:
		w.maxStale, _ = deltaSeconds(value)
	}
	return w
}

// take reports whether a stored answer is good enough for the request. One that
// is stale within its limits is, unless the request says how fresh it must be.
func (w *wants) take(r *cache.Result[*storedAnswer]) bool {
	switch {
	case w.validated, r.Value.each && r.Source != cache.Stale:
		return false
	case w.maxAge >= 0 && r.Value.age+r.Age > w.maxAge:
		return false
	case (w.minFresh > 0 || w.maxAge >= 0) && r.Fresh < w.minFresh:
		return false
	}
	return true
}

// takeStale reports whether the request may have an answer for which nobody is
// asked although its stale limits are over: the client says so, and the answer
// does not forbid it (RFC 9111, section 4.2.4).
func (w *wants) takeStale(r *cache.Result[*storedAnswer]) bool {
	cc := cacheControl(r.Value.header)
	switch {
	case w.validated, -r.Fresh > w.maxStale, w.minFresh > 0, w.maxAge >= 0 && r.Value.age+r.Age > w.maxAge:
		return false
	case cc.has("must-revalidate"), cc.has("proxy-revalidate"), cc.has("s-maxage"), cc.whole("no-cache"):
		return false
	}
	return true
}

// plan says what the cache may do for the request, nil where its route is not
// cached.
func (g *gate) plan(x *exchange) *cachePlan {
	policy := x.service.cachePolicy(x.endpoint)
	if policy == nil || !cachedMethod(x.r.Method) {
		return nil
	}
	p := &cachePlan{
		cache: g.cache, policy: policy, costHeader: x.service.costHeader, resource: policy.resource(x.r.Host, x.path, x.r.URL.RawQuery),
	}
	cc := cacheControl(x.r.Header)
	p.wants = wantsOf(cc, x.r.Header)
	h := x.r.Header
	switch {
	case cc.has("no-store"):
		p.bypass = "request"
	case x.r.ContentLength != 0, h.Get(headerUpgrade) != "", h.Get("If-Match") != "", h.Get("If-Unmodified-Since") != "",
		h.Get("Expect") != "":
		p.bypass = "bypass"
	case !g.cache.usable():
		p.bypass = "bypass"
	default:
		if p.family = g.cache.of(x.service.name); p.family == nil {
			p.bypass = "bypass"
		}
	}
	return p
}

// see takes over the request's header as the service will see it. Of a shared
// route the identity is withheld.
func (p *cachePlan) see(h http.Header, token string) {
	p.header = h
	if p.policy.shared && p.bypass == "" {
		for _, name := range [...]string{headerTenant, headerUser, headerApplication} {
			delete(h, name)
		}
		if token != "" {
			stripAuthorization(h, func(value string) bool { return bearer(value) == token })
		}
	}
	p.authorized = len(h[headerAuthorization]) > 0 || h[headerTenant] != nil || h[headerUser] != nil || h[headerApplication] != nil
	p.key = p.resource.key(p.authorized)
}

// keyedBy are the request headers, canonical, by which the exchange's route
// tells answers apart beside those that answers name; none where it is not cached.
func (x *exchange) keyedBy() []string {
	if x.plan == nil {
		return nil
	}
	return x.plan.policy.headers
}
