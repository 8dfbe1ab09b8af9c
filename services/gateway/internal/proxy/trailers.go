package proxy

import (
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// announce gives the service's request the trailers that the client announced and
// may send; their values arrive when the body has ended (see clientBody).
func (b *clientBody) announce(out *http.Request, arriving http.Header) {
	stripTrailers(out.Trailer)
	if b == nil || len(out.Trailer) == 0 {
		out.Trailer = nil
		return
	}
	b.arriving, b.leaving = arriving, out.Trailer
	out.ContentLength = -1 // only chunks have trailers (RFC 9112, section 7.1.2)
}

// stripTrailers removes what clients may not write, or not after a body: names that
// only the gate or a trusted peer may write, and fields by which a request is
// routed, framed or admitted (RFC 9110, section 6.5.1). A service may merge
// trailers into its header.
func stripTrailers(h http.Header) {
	stripClientHeaders(h, false)
	for name := range h {
		switch canonical := dashed(name); {
		case !fieldName(name), httpcache.HopByHop(canonical), strings.HasPrefix(canonical, "Content-"):
			delete(h, name)
		case canonical == identify.HeaderAuthorization, canonical == routing.HeaderHTTP2Settings, canonical == "Cookie", canonical == "Forwarded", canonical == "Host":
			delete(h, name)
		}
	}
}

// fieldName reports a token (RFC 9110, section 5.6.2): net/http accepts any name of
// a trailer, and sends only tokens.
func fieldName(s string) bool {
	for i := range len(s) {
		if !fieldChar(s[i]) {
			return false
		}
	}
	return s != ""
}

func fieldChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
