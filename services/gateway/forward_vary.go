package gateway

import (
	"net/http"
	"slices"
	"strings"
)

// varyByCredential adds to an answer that varies by an identity the fields that
// clients prove it with: caches in front of the gate never see the identity,
// and would give one tenant's answer to another (RFC 9110, section 12.5.5).
func varyByCredential(h http.Header) {
	for _, line := range h["Vary"] {
		for name := range strings.SplitSeq(line, ",") {
			switch http.CanonicalHeaderKey(strings.Trim(name, " \t")) {
			case headerTenant, headerUser, headerApplication:
				h["Vary"] = append(slices.Clip(h["Vary"]), headerAuthorization+", "+headerAPIKey)
				return
			}
		}
	}
}
