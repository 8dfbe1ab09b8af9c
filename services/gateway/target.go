package gateway

import (
	"net/http"
	"net/url"
	"strings"
)

// misaimed says what is wrong with the target of a request, "" where it is a
// path (origin-form) or, in HTTP/1, a URL of a host (absolute-form; RFC 9112,
// section 3.2). net/url reads more than that, x:anything among it, which has no
// path to match by and yet is sent on as it came.
func misaimed(r *http.Request) string {
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

// plainHost reports hosts of the characters of RFC 3986, section 3.2.2, and a
// port: in HTTP/2, and in a URL's zone, others arrive too. None is no host.
func plainHost(host string) bool {
	for i := range len(host) {
		c := host[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~%!$&'()*+,;=:[]", c) >= 0) {
			return false
		}
	}
	return true
}

// target is the URL of a path at the upstream. It is made anew, so that nothing
// of the URL as the client spelt it is sent on but the path that was judged,
// and the query. RawPath keeps the escapes of the cleaned path (%2F stays %2F).
func (up *upstream) target(path, rawQuery string) *url.URL {
	escaped := up.base + path
	plain, err := url.PathUnescape(escaped)
	if err != nil {
		// Both parts were parsed before; a cleaned path always unescapes.
		plain = escaped
	}
	return &url.URL{Scheme: up.scheme, Host: up.host, Path: plain, RawPath: escaped, RawQuery: rawQuery}
}
