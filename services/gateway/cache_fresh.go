package gateway

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/catalog"
)

// Statuses whose answers may be stored without a word of freshness (RFC 9110,
// section 15.1; 206 is not stored at all), and others that this cache knows.
var (
	cacheableStatuses = []int{200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501}
	knownStatuses     = []int{302, 303, 307, 400, 401, 402, 403, 406, 409, 411, 413, 415, 421, 422, 429, 431, 451, 500, 502, 503, 504, 505}
)

// failing are the statuses that stale-if-error speaks of (RFC 5861, section 4).
func failing(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// shelfLife is what an answer says of how it may be kept.
type shelfLife struct {
	// fresh is how long from now; 0 or less where it must be validated first.
	fresh time.Duration
	// explicit: the answer says so itself.
	explicit bool
	// revalidate and failing are the two stale limits (RFC 5861).
	revalidate, failing time.Duration
	// age is how old it was when it came.
	age time.Duration
}

// answerTimes are when a request was sent and its answer's header came.
type answerTimes struct{ sent, came time.Time }

// storable judges an answer to GET by RFC 9111, section 3, as a shared cache;
// why is empty where it may be stored. authorized: the request had an identity
// or Authorization.
func (p *cachePolicy) storable(status int, h http.Header, authorized bool, at answerTimes) (life shelfLife, why string) {
	cc := cacheControl(h)
	known := slices.Contains(cacheableStatuses, status) || slices.Contains(knownStatuses, status)
	understood := cc.has("must-understand") && known
	switch {
	case status < 200, status == http.StatusPartialContent, status == http.StatusNotModified, status == http.StatusRequestedRangeNotSatisfiable:
		return life, "status"
	case cc.has("must-understand") && !known:
		return life, "status"
	case cc.has("no-store") && !understood:
		return life, "no-store"
	case cc.whole("private"):
		return life, "private"
	case len(h["Set-Cookie"]) > 0:
		return life, "set-cookie"
	case authorized && !forEverybody(cc):
		return life, "authorization"
	case variesByAll(h):
		return life, "vary"
	case strings.HasPrefix(h.Get("Content-Type"), "text/event-stream"):
		return life, "stream"
	}
	life = p.life(status, h, cc, at)
	switch {
	case !life.explicit && !slices.Contains(cacheableStatuses, status):
		return life, "no-freshness"
	case life.fresh <= 0 && life.revalidate <= 0 && life.failing <= 0 && !hasValidator(h):
		return life, "stale"
	case life.fresh <= 0 && !life.explicit && !cc.whole("no-cache"):
		return life, "no-freshness"
	}
	return life, ""
}

// forEverybody reports an answer that may be shared although its request had
// Authorization (RFC 9111, section 3.5).
func forEverybody(cc directives) bool {
	return cc.has("public") || cc.has("s-maxage") || cc.has("must-revalidate")
}

func hasValidator(h http.Header) bool { return h.Get("Etag") != "" || h.Get("Last-Modified") != "" }

// life is how long the answer is fresh (RFC 9111, section 4.2) and may be stale.
func (p *cachePolicy) life(status int, h http.Header, cc directives, at answerTimes) shelfLife {
	date, ok := httpDate(h["Date"])
	if !ok {
		date = at.came
	}
	l := shelfLife{age: initialAge(h, date, at)}
	total, explicit := lifetime(h, cc, date)
	if !explicit {
		total = p.defaultLife(status)
	}
	l.explicit = explicit
	l.fresh = min(total, catalog.MaxFresh) - l.age
	if cc.whole("no-cache") || !cc.some() && hasPragmaNoCache(h) {
		l.fresh = 0
	}
	l.revalidate, l.failing = p.staleLimits(cc, total)
	return l
}

func (d directives) some() bool { return len(d) > 0 }

// lifetime is what the answer says: s-maxage before max-age before Expires.
func lifetime(h http.Header, cc directives, date time.Time) (total time.Duration, explicit bool) {
	for _, name := range [...]string{"s-maxage", "max-age"} {
		if t, ok := cc.seconds(name); ok {
			return t, true
		}
	}
	if values := h["Expires"]; len(values) > 0 {
		at, ok := httpDate(values)
		if !ok {
			return 0, true // malformed, 0 among it, is in the past
		}
		return at.Sub(date), true
	}
	return 0, false
}

// defaultLife is the route's, for answers that do not say. There are no guesses
// by Last-Modified.
func (p *cachePolicy) defaultLife(status int) time.Duration {
	if status == http.StatusNotFound || status == http.StatusGone {
		return p.negativeTTL
	}
	return p.ttl
}

// staleLimits are the answer's own, else the route's; none where the answer
// forbids it (RFC 9111, section 4.2.4). s-maxage forbids the route's, not its own.
func (p *cachePolicy) staleLimits(cc directives, total time.Duration) (revalidate, failing time.Duration) {
	if cc.has("must-revalidate") || cc.has("proxy-revalidate") || cc.whole("no-cache") || total < 0 {
		return 0, 0
	}
	limit := func(name string, route time.Duration) time.Duration {
		if own, ok := cc.seconds(name); ok {
			return min(own, catalog.MaxStale)
		}
		if cc.has("s-maxage") {
			return 0
		}
		return route
	}
	return limit("stale-while-revalidate", p.revalidate), limit("stale-if-error", p.failing)
}

// initialAge is RFC 9111's corrected_initial_age, section 4.2.3.
func initialAge(h http.Header, date time.Time, at answerTimes) time.Duration {
	apparent := max(0, at.came.Sub(date))
	if apparent < time.Second { // Date has whole seconds
		apparent = 0
	}
	said := time.Duration(0)
	if values := h["Age"]; len(values) > 0 {
		first, _, _ := strings.Cut(values[0], ",")
		if t, ok := deltaSeconds(strings.Trim(first, " \t")); ok {
			said = t + max(0, at.came.Sub(at.sent))
		}
	}
	return max(apparent, said)
}

// httpDate reads a field that holds one date. Case means nothing in it, and no
// other zone than GMT is right (RFC 9111, section 4.2); asctime's has none.
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

func hasPragmaNoCache(h http.Header) bool {
	for _, line := range h["Pragma"] {
		for value := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(value, " \t"), "no-cache") {
				return true
			}
		}
	}
	return false
}
