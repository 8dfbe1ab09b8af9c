package gateway

import (
	"net/http"
	"strings"
)

// answerWriter is what an upstream's answer is written through: around the
// final header, where the gate's own take their place, an answer has early
// ones (1xx) and trailers, and an upstream must not speak for the gate there
// either.
type answerWriter struct {
	http.ResponseWriter

	x *exchange
	// legacy: the gate sends X-RateLimit-*, so nobody else may.
	legacy bool
}

// Unwrap lets http.ResponseController flush and hijack.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *answerWriter) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		w.strip(w.Header(), "")
	}
	w.ResponseWriter.WriteHeader(status)
}

// strip removes the gate's names from h; prefix is what stands before a name.
func (w *answerWriter) strip(h http.Header, prefix string) {
	for key := range h {
		if name, ok := strings.CutPrefix(key, prefix); ok && w.reserved(name) {
			delete(h, key)
		}
	}
}

// stripTrailers removes the gate's names from trailers that the upstream had
// not announced; the announced ones are known to passAnswer.
func (w *answerWriter) stripTrailers() { w.strip(w.Header(), http.TrailerPrefix) }

// reserved names are the gate's to write, or, the cost, to read.
func (w *answerWriter) reserved(name string) bool {
	switch name = dashed(name); name {
	case headerLimit, headerPolicy:
		return true
	case headerLegacyLimit, headerLegacyRemaining, headerLegacyReset:
		return w.legacy
	case "":
		return false
	}
	return strings.HasPrefix(name, sluicePrefix) || name == w.x.service.costHeader
}
