package gateway

import (
	"net/http"
	"slices"
	"strings"
)

const (
	headerProxyAuthorization = "Proxy-Authorization"
	// Beginnings of the names that only the gate, or a trusted peer, may write.
	sluicePrefix    = "Sluice-"
	forwardedPrefix = "X-Forwarded-"
)

// dashed is the name that a server which reads _ as - (CGI, WSGI and their
// kind) takes a header for, in canonical form.
func dashed(name string) string {
	if strings.IndexByte(name, '_') < 0 {
		return name
	}
	return http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// stripClientHeaders removes what only the gate may say or know: API keys of
// ours, identities, Sluice-*, the hops before a peer that is not trusted, and
// whatever else some server would take for one of them.
func stripClientHeaders(h http.Header, trustedPeer bool) {
	h.Del(headerAPIKey)
	h.Del(headerTenant)
	h.Del(headerUser)
	h.Del(headerApplication)
	stripAuthorization(h, carriesKey)
	for name := range h {
		canonical := dashed(name)
		switch {
		case strings.HasPrefix(canonical, sluicePrefix):
			delete(h, name)
		case strings.HasPrefix(canonical, forwardedPrefix):
			if canonical != name || !trustedPeer {
				delete(h, name)
			}
		case canonical == name: // the four names themselves are gone already
		case canonical == headerAPIKey, canonical == headerTenant, canonical == headerUser, canonical == headerApplication,
			canonical == headerProxyAuthorization:
			delete(h, name)
		}
	}
}

// stripAuthorization removes the values of Authorization that ours says are
// meant for the gate. The slice is the client's request's too and stays whole.
func stripAuthorization(h http.Header, ours func(value string) bool) {
	values := h[headerAuthorization]
	if !slices.ContainsFunc(values, ours) {
		return
	}
	if kept := slices.DeleteFunc(slices.Clone(values), ours); len(kept) > 0 {
		h[headerAuthorization] = kept
	} else {
		delete(h, headerAuthorization)
	}
}
