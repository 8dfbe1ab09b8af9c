package routing

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// badTarget says what is wrong with the target of a request, "" where it is a path
// (origin-form) or, in HTTP/1, a URL of a host (absolute-form; RFC 9112, section
// 3.2). net/url accepts more, such as x:anything, which has no path to match by
// and would be forwarded as it came.
func badTarget(r *http.Request) string {
	u := r.URL
	switch {
	case !plainHost(r.Host):
		return "The host has characters that no host has."
	case strings.HasPrefix(r.RequestURI, "/"):
		return ""
	case r.ProtoMajor >= 2:
		return ":path must begin with a slash." // RFC 9113, section 8.3.1
	case u.Opaque != "" || u.Host == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https"):
		return "The target must be a path, or a URL such as http://host/path."
	}
	return ""
}

// plainHost reports a host of the characters of RFC 3986, section 3.2.2, and a port:
// HTTP/2 and the zone of a URL can carry others. An empty host is one.
func plainHost(host string) bool {
	for i := range len(host) {
		c := host[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~%!$&'()*+,;=:[]", c) >= 0) {
			return false
		}
	}
	return true
}

// Target is the URL of a path at the upstream. It is made anew, so that nothing of
// the client's URL is forwarded but the path that was matched, and the query.
// RawPath keeps the escapes of the cleaned path (%2F stays %2F).
func (up *Upstream) Target(path, rawQuery string) *url.URL {
	escaped := up.base + path
	plain, err := url.PathUnescape(escaped)
	if err != nil {
		// Both parts were parsed before; a cleaned path always unescapes.
		plain = escaped
	}
	return &url.URL{Scheme: up.scheme, Host: up.host, Path: plain, RawPath: escaped, RawQuery: rawQuery}
}

// CleanPath is the path that the request is matched by and forwarded with.
func CleanPath(r *http.Request) (string, *reject.Rejection) {
	escaped := r.URL.EscapedPath()
	if escaped == "" {
		escaped = "/" // GET http://host means the root (RFC 9112, section 3.2.1)
	}
	path, err := route.CleanPath(escaped)
	if err != nil {
		return "", badPath("Bad path", err.Error())
	}
	if strings.IndexByte(r.URL.RawQuery, ' ') >= 0 { // HTTP/2 can carry one, a request line cannot
		return "", badPath("Bad path", "query holds a space; it is written %20")
	}
	return path, nil
}

func badPath(title, detail string) *reject.Rejection {
	return &reject.Rejection{Reason: reject.BadPath, Problem: reject.Problem{Status: http.StatusBadRequest, Title: title, Detail: detail}}
}

// IsOwn reports paths that the gate answers itself.
func IsOwn(path string) bool { return strings.HasPrefix(path, catalog.OwnPrefix) }
