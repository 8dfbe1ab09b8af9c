package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
)

// stripClientHeaders removes what only the gate may write or know: our API keys,
// identities, Sluice-*, the hops before a peer that is not trusted, and any
// spelling that some server would take for one of them.
func stripClientHeaders(h http.Header, trustedPeer bool) {
	h.Del(identify.HeaderAPIKey)
	h.Del(identify.HeaderTenant)
	h.Del(identify.HeaderUser)
	h.Del(identify.HeaderApplication)
	StripAuthorization(h, identify.CarriesKey)
	for name := range h {
		canonical := dashed(name)
		switch {
		case strings.HasPrefix(canonical, gatePrefix):
			delete(h, name)
		case strings.HasPrefix(canonical, forwardedPrefix):
			if canonical != name || !trustedPeer {
				delete(h, name)
			}
		case canonical == name: // the four names themselves are gone already
		case canonical == identify.HeaderAPIKey, canonical == identify.HeaderTenant, canonical == identify.HeaderUser, canonical == identify.HeaderApplication,
			canonical == "Proxy-Authorization":
			delete(h, name)
		}
	}
}

// StripAuthorization removes the values of Authorization that are meant for the
// gate, as ours reports. The slice belongs to the client's request too and is not
// changed.
func StripAuthorization(h http.Header, ours func(value string) bool) {
	values := h[identify.HeaderAuthorization]
	if !slices.ContainsFunc(values, ours) {
		return
	}
	if kept := slices.DeleteFunc(slices.Clone(values), ours); len(kept) > 0 {
		h[identify.HeaderAuthorization] = kept
	} else {
		delete(h, identify.HeaderAuthorization)
	}
}
