package proxy

import (
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

const (
	// Prefixes of the names that only the gate, or a trusted peer, may write.
	gatePrefix      = "Sluice-"
	forwardedPrefix = "X-Forwarded-"
)

// WrittenByGate reports response fields that the gate writes for each response.
func WrittenByGate(name string) bool {
	name = dashed(name)
	return name == reject.HeaderLimit || name == reject.HeaderPolicy || strings.HasPrefix(name, gatePrefix) || strings.HasPrefix(name, "X-Ratelimit-")
}

// dashed is the canonical name that a server which takes _ for - (CGI, WSGI and
// the like) reads a header as.
func dashed(name string) string {
	if strings.IndexByte(name, '_') < 0 {
		return name
	}
	return http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
}
