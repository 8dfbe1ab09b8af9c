package proxy

import (
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// writer is what a service's response is written through. Around the final header,
// where the gate's fields replace the service's, a response has early headers (1xx)
// and trailers, in which a service must not write the gate's fields either.
type writer struct {
	http.ResponseWriter

	costHeader string
	// legacy: the gate sends X-RateLimit-*, so the service may not.
	legacy bool
}

// Unwrap lets http.ResponseController flush and hijack.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		w.strip(w.Header(), "")
	}
	w.ResponseWriter.WriteHeader(status)
}

// strip removes the gate's names from h; prefix is what stands before a name.
func (w *writer) strip(h http.Header, prefix string) {
	for key := range h {
		if name, ok := strings.CutPrefix(key, prefix); ok && w.reserved(name) {
			delete(h, key)
		}
	}
}

// stripTrailers removes the gate's names from trailers that the service had not
// announced; the announced ones are known when the header comes.
func (w *writer) stripTrailers() { w.strip(w.Header(), http.TrailerPrefix) }

// reserved names are written, or, the cost, read by the gate alone.
func (w *writer) reserved(name string) bool {
	switch name = dashed(name); name {
	case reject.HeaderLimit, reject.HeaderPolicy:
		return true
	case reject.HeaderLegacyLimit, reject.HeaderLegacyRemaining, reject.HeaderLegacyReset:
		return w.legacy
	case "":
		return false
	}
	return strings.HasPrefix(name, gatePrefix) || name == w.costHeader
}
