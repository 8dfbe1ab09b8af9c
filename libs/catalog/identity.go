package catalog

import (
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

func (v *validation) identity(s catalog.Service) {
	switch s.RequireIdentity {
	case "", catalog.RequireKey, catalog.RequireToken, catalog.RequireKeyOrToken:
	default:
		v.add("requireIdentity", "must be key, token or keyOrToken, or left out")
		return
	}
	if s.RequireKey && s.RequireIdentity != "" && s.RequireIdentity != catalog.RequireKey {
		v.add("requireIdentity", "must not be %s together with requireKey, which demands an API key: leave one of them out", s.RequireIdentity)
	}
}

// keptHeaders mean something to HTTP itself or are the gate's own to write: a
// cost read from one of them would be an accident, and to take it off an
// answer would break it.
var keptHeaders = []string{
	"Age", "Alt-Svc", "Cache-Control", "Connection", "Date", "Etag", "Expires", "Keep-Alive", "Last-Modified", "Location",
	"Ratelimit", "Ratelimit-Policy", "Retry-After", "Server", "Set-Cookie", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Vary",
	"Www-Authenticate", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
}

func (v *validation) costHeader(name string) {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case name == "":
	case len(name) > MaxHeaderLength || !token(name):
		v.add("costHeader", "must be the name of a header, such as X-Sluice-Cost, of at most %d characters", MaxHeaderLength)
	case meansSomething(canonical):
		v.add("costHeader", "must not be %s, which means something else: give a header of your own, such as X-Sluice-Cost", canonical)
	}
}

func (v *validation) maxCost(s catalog.Service) {
	switch {
	case s.MaxCost == nil:
	case *s.MaxCost < 1 || *s.MaxCost > MaxCost:
		v.add("maxCost", "must be from 1 to 2^53, not %d", *s.MaxCost)
	}
}

func meansSomething(canonical string) bool {
	return slices.Contains(keptHeaders, canonical) || strings.HasPrefix(canonical, "Content-") || strings.HasPrefix(canonical, "Access-Control-")
}

// token is RFC 9110's, section 5.6.2.
func token(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			return false
		}
		return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
