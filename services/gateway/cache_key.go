package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resource names what is cached: a URL as clients ask for it, as far as the
// route tells answers apart by it. Methods are not part of it: only GET is stored.
type resource struct {
	host, path, query string
	// filtered: query holds only some of the parameters.
	filtered bool
}

func (p *cachePolicy) resource(host, path, rawQuery string) resource {
	r := resource{host: strings.ToLower(host), path: path}
	switch {
	case p.query == "none":
		r.filtered = true
	case p.query == "named":
		r.filtered, r.query = true, pick(rawQuery, p.queryNames)
	default:
		r.query = rawQuery
	}
	return r
}

// pick keeps the named parameters, sorted so that their order tells nothing apart.
func pick(rawQuery string, names []string) string {
	var kept []string
	for pair := range strings.SplitSeq(rawQuery, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil && slices.Contains(names, plain) {
			kept = append(kept, pair)
		}
	}
	// Stable, and by name alone: the order of values of one name may mean something.
	slices.SortStableFunc(kept, func(a, b string) int {
		left, _, _ := strings.Cut(a, "=")
		right, _, _ := strings.Cut(b, "=")
		return strings.Compare(left, right)
	})
	return strings.Join(kept, "&")
}

// key of the resource's answers. Requests with an identity have theirs apart:
// what may not be shared among them must not keep anybody else's from being
// stored.
func (r *resource) key(authorized bool) string {
	key := r.host + " " + r.path + "?" + r.query
	if authorized {
		key += " authorized"
	}
	return short(key)
}

// ReadCacheKey is the URL that a key of a service's family stands for, with the
// parameters of the query that tell answers apart; ok is false where the key is
// too long to say.
func ReadCacheKey(key string) (host, path, query string, ok bool) {
	host, rest, _ := strings.Cut(key, " ")
	target, _, _ := strings.Cut(rest, " ")
	path, query, ok = strings.Cut(target, "?")
	return host, path, query, ok && strings.HasPrefix(path, "/") && !strings.Contains(key, " sha256:")
}

// short keeps a key that a client can make long within bounds.
func short(key string) string {
	const longest = 512
	if len(key) <= longest {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return key[:longest/2] + " sha256:" + hex.EncodeToString(sum[:])
}

// variant is the key of the answer to a request with these headers, where the
// answer under the resource's own key says by which it varies. It is of the
// incarnation of that answer: when that one is cleared, no variant is found again.
func (s *storedAnswer) variant(key string, h http.Header) string {
	var b strings.Builder
	b.WriteString(s.incarnation)
	for _, name := range s.vary {
		b.WriteString("\n" + name + ":" + seen(h, name))
	}
	sum := sha256.Sum256([]byte(b.String()))
	return key + " " + hex.EncodeToString(sum[:])
}

// matches reports whether the answer is one to a request with these headers
// (RFC 9111, section 4.1).
func (s *storedAnswer) matches(h http.Header) bool {
	for i, name := range s.vary {
		if seen(h, name) != s.varyValues[i] {
			return false
		}
	}
	return true
}

// identifying are request headers that say on whose behalf a request is.
var identifying = map[string]bool{
	headerAuthorization: true, headerAPIKey: true, headerTenant: true, headerUser: true, headerApplication: true, "Cookie": true,
}

// sameCaller reports whether the request is by the one whose answer this is, as
// far as it varies by that.
func (s *storedAnswer) sameCaller(h http.Header) bool {
	for i, name := range s.vary {
		if identifying[name] && seen(h, name) != s.varyValues[i] {
			return false
		}
	}
	return true
}

// caseless are request headers in whose values case means nothing: tags of
// languages, content codings, charsets (RFC 9110, section 12.5).
var caseless = map[string]bool{"Accept-Language": true, "Accept-Encoding": true, "Accept-Charset": true}

// seen is a header as the service sees it, with what means nothing taken out:
// whitespace, and case where it does not matter. In who somebody is, nothing
// means nothing. Of absent and empty the first is "-".
func seen(h http.Header, name string) string {
	values, ok := h[name]
	if !ok {
		return "-"
	}
	if identifying[name] {
		return "," + strings.Join(values, ",")
	}
	var b strings.Builder
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		b.WriteString("," + strings.Trim(part, " \t"))
	}
	if caseless[name] {
		return lowerASCII(b.String())
	}
	return b.String()
}

// lowerASCII leaves alone what looks like a letter and is none: a Kelvin sign
// must not come to stand for a k.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func variesByAll(h http.Header) bool {
	return slices.ContainsFunc(h["Vary"], func(line string) bool { return strings.Contains(line, "*") })
}

// nominated are the headers an answer varies by: its own Vary and the route's.
// By a credential means by whom it proves: the gate took the key, and perhaps
// the token, out of the request, so that its field alone would be the same of
// every tenant.
func (p *cachePolicy) nominated(h http.Header) []string {
	names := slices.Clone(p.headers)
	for _, line := range h["Vary"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.Trim(name, " \t"); name != "" {
				names = append(names, http.CanonicalHeaderKey(name))
			}
		}
	}
	if slices.Contains(names, headerAuthorization) || slices.Contains(names, headerAPIKey) {
		names = append(names, headerTenant, headerUser, headerApplication)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
