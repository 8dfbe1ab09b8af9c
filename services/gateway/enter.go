package gateway

import (
	"net/http"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// enter answers a request that the service does not let in.
func (g *gate) enter(x *exchange) bool {
	why, p := g.turnsAway(x.service, &x.who)
	switch {
	case p == nil:
		return true
	case p.status == http.StatusUnauthorized:
		challenge(x, anyBearer)
	default:
		x.w.Header().Set("Retry-After", shortWait())
	}
	return g.refuse(x, why, p)
}

// turnsAway holds a request against what its service demands of those who come
// in: a credential of some kind, keys that are known to be in force, and an
// upstream to forward to, since to charge without one would be wrong. It
// returns nil where the request may come in.
func (g *gate) turnsAway(s *service, who *identity) (refusal, *problem) {
	title, detail := s.misses(who)
	switch {
	case title != "":
		return refusedNoKey, &problem{status: http.StatusUnauthorized, title: title, detail: detail}
	case s.refuseStaleKeys && who.key != nil && g.keysAreStale():
		return refusedStaleKeys, reducedCapacity("The gate cannot know at present whether API keys are still in force.")
	case s.weights == 0:
		return refusedNoUpstream, reducedCapacity("The service takes no requests at present.")
	}
	return 0, nil
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
