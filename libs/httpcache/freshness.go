package httpcache

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Statuses whose responses may be stored without explicit freshness (RFC 9110,
// section 15.1; 206 is not stored at all), and others that this cache knows.
var (
	cacheableStatuses = []int{200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501}
	knownStatuses     = []int{302, 303, 307, 400, 401, 402, 403, 406, 409, 411, 413, 415, 421, 422, 429, 431, 451, 500, 502, 503, 504, 505}
)

// isServerFailure reports the statuses that stale-if-error is about (RFC 5861, section 4).
func isServerFailure(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// freshness is how long a response may be used.
type freshness struct {
	// lifetime is how long from now it is fresh; 0 or less where it must be validated first.
	lifetime time.Duration
	// explicit: the response says so itself.
	explicit bool
	// staleWhileRevalidate and staleIfError are the stale limits (RFC 5861).
	staleWhileRevalidate, staleIfError time.Duration
	// age is how old it was when it was received.
	age time.Duration
}

// storable judges a response to GET by RFC 9111, section 3, as a shared cache;
// reason is empty where it may be stored. authorized: the request had an identity
// or Authorization.
func (c *Cache) storable(p *Policy, status int, h http.Header, authorized bool, at messageTimes) (f freshness, reason string) {
	cc := cacheControl(h)
	known := slices.Contains(cacheableStatuses, status) || slices.Contains(knownStatuses, status)
	understood := cc.has("must-understand") && known
	switch {
	case status < 200, status == http.StatusPartialContent, status == http.StatusNotModified, status == http.StatusRequestedRangeNotSatisfiable:
		return f, "status"
	case cc.has("must-understand") && !known:
		return f, "status"
	case cc.has("no-store") && !understood:
		return f, "no-store"
	case cc.unqualified("private"):
		return f, "private"
	case len(h["Set-Cookie"]) > 0:
		return f, "set-cookie"
	case authorized && !shareable(cc):
		return f, "authorization"
	case VariesByAll(h):
		return f, "vary"
	case strings.HasPrefix(h.Get("Content-Type"), "text/event-stream"):
		return f, "stream"
	}
	f = c.freshness(p, status, h, cc, at)
	switch {
	case !f.explicit && !slices.Contains(cacheableStatuses, status):
		return f, "no-freshness"
	case f.lifetime <= 0 && f.staleWhileRevalidate <= 0 && f.staleIfError <= 0 && !hasValidator(h):
		return f, "stale"
	case f.lifetime <= 0 && !f.explicit && !cc.unqualified("no-cache"):
		return f, "no-freshness"
	}
	return f, ""
}

// shareable reports a response that may be given to other callers although its
// request had Authorization (RFC 9111, section 3.5).
func shareable(cc directives) bool {
	return cc.has("public") || cc.has("s-maxage") || cc.has("must-revalidate")
}

func hasValidator(h http.Header) bool { return h.Get("Etag") != "" || h.Get("Last-Modified") != "" }

// freshness is how long the response is fresh (RFC 9111, section 4.2) and may be served stale.
func (c *Cache) freshness(p *Policy, status int, h http.Header, cc directives, at messageTimes) freshness {
	date, ok := httpDate(h["Date"])
	if !ok {
		date = at.received
	}
	f := freshness{age: initialAge(h, date, at)}
	total, explicit := statedLifetime(h, cc, date)
	if !explicit {
		total = p.defaultLifetime(status)
	}
	f.explicit = explicit
	f.lifetime = capped(total, c.o.MaxFresh) - f.age
	if cc.unqualified("no-cache") || len(cc) == 0 && pragmaNoCache(h) {
		f.lifetime = 0
	}
	f.staleWhileRevalidate, f.staleIfError = c.staleLimits(p, cc, total)
	return f
}

// capped is d, at most limit unless that is 0.
func capped(d, limit time.Duration) time.Duration {
	if limit > 0 {
		return min(d, limit)
	}
	return d
}

// statedLifetime is the response's own: s-maxage before max-age before Expires.
func statedLifetime(h http.Header, cc directives, date time.Time) (total time.Duration, explicit bool) {
	for _, name := range [...]string{"s-maxage", "max-age"} {
		if t, ok := cc.seconds(name); ok {
			return t, true
		}
	}
	if values := h["Expires"]; len(values) > 0 {
		at, ok := httpDate(values)
		if !ok {
			return 0, true // a malformed date, "0" among them, is in the past
		}
		return at.Sub(date), true
	}
	return 0, false
}

// defaultLifetime is the policy's, for responses that state none. There is no
// heuristic by Last-Modified.
func (p *Policy) defaultLifetime(status int) time.Duration {
	if status == http.StatusNotFound || status == http.StatusGone {
		return p.NegativeTTL
	}
	return p.TTL
}

// staleLimits are the response's own, else the policy's; none where the response
// forbids it (RFC 9111, section 4.2.4). s-maxage forbids the policy's limits, not
// those that the response states.
func (c *Cache) staleLimits(p *Policy, cc directives, total time.Duration) (whileRevalidate, ifError time.Duration) {
	if cc.has("must-revalidate") || cc.has("proxy-revalidate") || cc.unqualified("no-cache") || total < 0 {
		return 0, 0
	}
	limit := func(name string, policy time.Duration) time.Duration {
		if own, ok := cc.seconds(name); ok {
			return capped(own, c.o.MaxStale)
		}
		if cc.has("s-maxage") {
			return 0
		}
		return policy
	}
	return limit("stale-while-revalidate", p.StaleWhileRevalidate), limit("stale-if-error", p.StaleIfError)
}

// initialAge is RFC 9111's corrected_initial_age, section 4.2.3.
func initialAge(h http.Header, date time.Time, at messageTimes) time.Duration {
	apparent := max(0, at.received.Sub(date))
	if apparent < time.Second { // a Date has whole seconds
		apparent = 0
	}
	stated := time.Duration(0)
	if values := h["Age"]; len(values) > 0 {
		first, _, _ := strings.Cut(values[0], ",")
		if t, ok := deltaSeconds(strings.Trim(first, " \t")); ok {
			stated = t + max(0, at.received.Sub(at.sent))
		}
	}
	return max(apparent, stated)
}

// httpDate reads a field that holds one date. It is case-insensitive, and the
// zone is GMT (RFC 9111, section 4.2); the asctime format has none.
func httpDate(values []string) (time.Time, bool) {
	if len(values) == 0 || values[0] == "" {
		return time.Time{}, false
	}
	text := values[0]
	if last := text[len(text)-1]; last < '0' || last > '9' {
		zone := max(0, len(text)-len("GMT"))
		if !strings.EqualFold(text[zone:], "GMT") {
			return time.Time{}, false
		}
		text = text[:zone] + "GMT"
	}
	t, err := http.ParseTime(text)
	return t, err == nil
}
