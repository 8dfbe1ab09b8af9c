package httpcache

import (
	"math"
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

// requestDirectives are what a request says of the responses it accepts (RFC 9111, section 5.2.1).
type requestDirectives struct {
	noCache      bool // the origin must confirm the response
	onlyIfCached bool
	maxAge       time.Duration // negative: any
	minFresh     time.Duration
	// maxStale is how stale the response may be if there is no other; 0 is not at all.
	maxStale time.Duration
}

func requestDirectivesOf(cc directives, h http.Header) requestDirectives {
	d := requestDirectives{maxAge: -1, noCache: cc.has("no-cache") || len(cc) == 0 && pragmaNoCache(h), onlyIfCached: cc.has("only-if-cached")}
	if t, ok := cc.seconds("max-age"); ok {
		d.maxAge = t
	}
	d.minFresh, _ = cc.seconds("min-fresh")
	switch value, ok := cc.get("max-stale"); {
	case !ok:
	case value == "":
		d.maxStale = math.MaxInt64 // however stale
	default:
		d.maxStale, _ = deltaSeconds(value)
	}
	return d
}

// allow reports whether a stored response satisfies the request. One that is stale within its limits does, unless the
// request says how fresh the response must be.
func (d *requestDirectives) allow(r *cache.Result[*storedResponse]) bool {
	switch {
	case d.noCache, r.Value.validateEach && r.Source != cache.Stale:
		return false
	case d.maxAge >= 0 && r.Value.age+r.Age > d.maxAge:
		return false
	case (d.minFresh > 0 || d.maxAge >= 0) && r.Fresh < d.minFresh:
		return false
	}
	return true
}

// allowStale reports whether the request may have a response that nobody confirms although its stale limits are over:
// the client says so, and the response does not forbid it (RFC 9111, section 4.2.4).
func (d *requestDirectives) allowStale(r *cache.Result[*storedResponse]) bool {
	cc := cacheControl(r.Value.header)
	switch {
	case d.noCache, -r.Fresh > d.maxStale, d.minFresh > 0, d.maxAge >= 0 && r.Value.age+r.Age > d.maxAge:
		return false
	case cc.has("must-revalidate"), cc.has("proxy-revalidate"), cc.has("s-maxage"), cc.unqualified("no-cache"):
		return false
	}
	return true
}
