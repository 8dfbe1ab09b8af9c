package httpcache

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resource names what is cached: a URL as clients ask for it, as far as the
// policy distinguishes responses by it. Only responses to GET are stored.
type resource struct {
	host, path, query string
	// filtered: query holds only some of the request's parameters.
	filtered bool
}

func (p *Policy) resource(host, path, rawQuery string) resource {
	r := resource{host: strings.ToLower(host), path: path}
	switch {
	case p.Query == QueryNone:
		r.filtered = true
	case p.Query == QueryNamed:
		r.filtered, r.query = true, namedParameters(rawQuery, p.QueryNames)
	default:
		r.query = rawQuery
	}
	return r
}

// namedParameters keeps the named parameters, sorted so that their order distinguishes nothing.
func namedParameters(rawQuery string, names []string) string {
	var kept []string
	for pair := range strings.SplitSeq(rawQuery, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil && slices.Contains(names, plain) {
			kept = append(kept, pair)
		}
	}
	// Stable, and by name alone: the order of one name's values may matter.
	slices.SortStableFunc(kept, func(a, b string) int {
		left, _, _ := strings.Cut(a, "=")
		right, _, _ := strings.Cut(b, "=")
		return strings.Compare(left, right)
	})
	return strings.Join(kept, "&")
}

// key of the resource's responses. Requests with an identity have a partition of
// their own: a response to one of them that may not be shared must not keep
// responses to anonymous requests from being stored.
func (r *resource) key(authorized bool) string {
	key := r.host + " " + r.path + "?" + r.query
	if authorized {
		key += " authorized"
	}
	return boundedKey(key)
}

// ParseKey returns the URL that a key of a family stands for, with the query
// parameters that distinguish responses; ok is false where the key was too long
// and holds a hash.
func ParseKey(key string) (host, path, query string, ok bool) {
	host, rest, _ := strings.Cut(key, " ")
	target, _, _ := strings.Cut(rest, " ")
	path, query, ok = strings.Cut(target, "?")
	return host, path, query, ok && strings.HasPrefix(path, "/") && !strings.Contains(key, " sha256:")
}

// boundedKey bounds a key, which a client can make long.
func boundedKey(key string) string {
	const longest = 512
	if len(key) <= longest {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return key[:longest/2] + " sha256:" + hex.EncodeToString(sum[:])
}

// variant is the key of the response to the request, where the
// primary response of the resource names the headers that it varies by. The key
// contains the primary's incarnation: when the primary is cleared, no variant is
// found again.
func (l *Lookup) variant(s *storedResponse, primary string) string {
	var b strings.Builder
	b.WriteString(s.incarnation)
	for _, name := range s.vary {
		b.WriteString("\n" + name + ":" + l.cache.fieldValue(l.header, name))
	}
	sum := sha256.Sum256([]byte(b.String()))
	return primary + " " + hex.EncodeToString(sum[:])
}

// matches reports whether the response may answer the request by its Vary (RFC
// 9111, section 4.1).
func (l *Lookup) matches(s *storedResponse) bool {
	for i, name := range s.vary {
		if l.cache.fieldValue(l.header, name) != s.varyValues[i] {
			return false
		}
	}
	return true
}

// identifies reports request headers that say on whose behalf a request is.
func (c *Cache) identifies(name string) bool {
	return name == "Authorization" || name == "Cookie" || slices.Contains(c.o.Identity, name) || slices.Contains(c.o.Credentials, name)
}

// sameCaller reports whether the request is by the caller whose response this is,
// as far as the response varies by the caller.
func (l *Lookup) sameCaller(s *storedResponse) bool {
	for i, name := range s.vary {
		if l.cache.identifies(name) && l.cache.fieldValue(l.header, name) != s.varyValues[i] {
			return false
		}
	}
	return true
}

// caseInsensitive are request headers whose values are: language tags, content
// codings, charsets (RFC 9110, section 12.5).
var caseInsensitive = map[string]bool{"Accept-Language": true, "Accept-Encoding": true, "Accept-Charset": true}

// fieldValue is a request header as the origin sees it, without the whitespace
// around list members, and in lower case where case does not matter. An absent
// header is "-", which no present one is. Headers that identify a caller are taken
// byte by byte.
func (c *Cache) fieldValue(h http.Header, name string) string {
	values, ok := h[name]
	if !ok {
		return "-"
	}
	if c.identifies(name) {
		return "," + strings.Join(values, ",")
	}
	var b strings.Builder
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		b.WriteString("," + strings.Trim(part, " \t"))
	}
	if caseInsensitive[name] {
		return lowerASCII(b.String())
	}
	return b.String()
}

// lowerASCII changes ASCII letters only: a Kelvin sign must not become a k.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// VariesByAll reports a response whose Vary is *: it answers no other request.
func VariesByAll(h http.Header) bool {
	return slices.ContainsFunc(h["Vary"], func(line string) bool { return strings.Contains(line, "*") })
}

// varyFields are the headers that a response varies by: its own Vary and the
// policy's. To vary by a credential means to vary by the identity that it proves:
// the proxy removed the credential from the request, so that its field alone would
// be the same for every caller.
func (c *Cache) varyFields(p *Policy, h http.Header) []string {
	names := slices.Clone(p.Headers)
	for _, line := range h["Vary"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.Trim(name, " \t"); name != "" {
				names = append(names, http.CanonicalHeaderKey(name))
			}
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(c.o.Credentials, name) }) {
		names = append(names, c.o.Identity...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
