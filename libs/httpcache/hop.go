package httpcache

import (
	"net/http"
	"slices"
	"strings"
)

// hopByHop fields belong to one connection (RFC 9110, section 7.6.1) or to one proxy, and are neither forwarded nor
// stored.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// HopByHop reports a field, by its canonical name, that belongs to one connection or to one proxy.
func HopByHop(name string) bool { return slices.Contains(hopByHop, name) }

// RemoveHopByHop removes those fields from h, and those that its Connection field names.
func RemoveHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.Trim(name, " \t"))
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}
