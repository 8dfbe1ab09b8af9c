package gateway

import (
	"net/http"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// enter holds the request against what the service demands of those who come
// in: a credential of some kind, and keys that are known to be in force.
func (g *gate) enter(x *exchange) bool {
	s := x.service
	if title, detail := s.misses(&x.who); title != "" {
		challenge(x, anyBearer)
		return g.refuse(x, refusedNoKey, &problem{status: http.StatusUnauthorized, title: title, detail: detail})
	}
	if s.refuseStaleKeys && x.who.key != nil && g.keysAreStale() {
		return g.refuseForNow(x, refusedStaleKeys, "The gate cannot know at present whether API keys are still in force.")
	}
	return true
}

// misses says what credential the service demands and the request lacks; the
// title is empty when it lacks none.
func (s *service) misses(who *identity) (title, detail string) {
	key, token := who.key != nil, who.token != ""
	switch {
	case s.demands == catalog.RequireKey && !key:
		return "API key required", "Send the key in X-Api-Key or as a Bearer token."
	case s.demands == catalog.RequireToken && !token:
		return "Token required", "Send a token of an issuer that is trusted here as a Bearer token."
	case s.demands == catalog.RequireKeyOrToken && !key && !token:
		return "API key or token required", "Send an API key in X-Api-Key, or a key or token as a Bearer token."
	}
	return "", ""
}

// keysAreStale: a key may have been revoked longer ago than is tolerated
// without this gateway having heard of it.
func (g *gate) keysAreStale() bool {
	return g.maxStaleness > 0 && g.keysAge() > g.maxStaleness
}
