package proxy

import (
	"net/http"
	"strings"
)

// Response fields that the gate writes, in canonical form.
const (
	HeaderLimit  = "Ratelimit"
	HeaderPolicy = "Ratelimit-Policy"

	HeaderLegacyLimit     = "X-Ratelimit-Limit"
	HeaderLegacyRemaining = "X-Ratelimit-Remaining"
	HeaderLegacyReset     = "X-Ratelimit-Reset"
)

const (
	// Prefixes of the names that only the gate, or a trusted peer, may write.
	gatePrefix      = "Sluice-"
	forwardedPrefix = "X-Forwarded-"
)

// WrittenByGate reports response fields that the gate writes for each response.
func WrittenByGate(name string) bool {
	name = dashed(name)
	return name == HeaderLimit || name == HeaderPolicy || strings.HasPrefix(name, gatePrefix) || strings.HasPrefix(name, "X-Ratelimit-")
}

// dashed is the canonical name that a server which takes _ for - (CGI, WSGI and
// the like) reads a header as.
func dashed(name string) string {
	if strings.IndexByte(name, '_') < 0 {
		return name
	}
	return http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
}
