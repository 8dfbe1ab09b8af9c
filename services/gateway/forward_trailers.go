package gateway

import (
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/libs/httpcache"
)

// announce gives the service's request the trailers that the client announced
// and may send; their values come when the body has ended (see clientBody).
func (b *clientBody) announce(out *http.Request, arriving http.Header) {
	stripTrailers(out.Trailer)
	if b == nil || len(out.Trailer) == 0 {
		out.Trailer = nil
		return
	}
	b.arriving, b.leaving = arriving, out.Trailer
	out.ContentLength = -1 // only chunks have trailers (RFC 9112, section 7.1.2)
}

// passTrailers hands over the values. The transport reads them after the end
// of the body, by the goroutine that read it.
func (b *clientBody) passTrailers() {
	for name := range b.leaving {
		b.leaving[name] = b.arriving[name]
	}
}

// stripTrailers removes what clients may not say, or not after a body: names
// that only the gate or a trusted peer may write, and what a request is routed,
// framed or let in by (RFC 9110, section 6.5.1). A service may merge trailers
// into its header.
func stripTrailers(h http.Header) {
	stripClientHeaders(h, false)
	for name := range h {
		switch canonical := dashed(name); {
		case !fieldName(name), httpcache.HopByHop(canonical), strings.HasPrefix(canonical, "Content-"):
			delete(h, name)
		case canonical == headerAuthorization, canonical == headerHTTP2Settings, canonical == "Cookie", canonical == "Forwarded", canonical == "Host":
			delete(h, name)
		}
	}
}

// fieldName reports tokens (RFC 9110, section 5.6.2): net/http takes anything
// for the name of a trailer, and sends none that is no token.
func fieldName(s string) bool {
	for i := range len(s) {
		if !inWord(s[i]) && strings.IndexByte("!#$%&'*^`|", s[i]) < 0 || s[i] == '/' {
			return false
		}
	}
	return s != ""
}
