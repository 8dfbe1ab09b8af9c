package gateway

import (
	"net/http"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/schemas/events/keys"
)

// Headers that carry identities, in their canonical form.
const (
	headerAPIKey        = "X-Api-Key"
	headerAuthorization = "Authorization"
	headerTenant        = "X-Tenant-Id"
	headerUser          = "X-User-Id"
	headerApplication   = "X-Application-Id"
)

const (
	// keyPrefix marks our keys among bearer tokens; any other bearer belongs
	// to the upstream.
	keyPrefix = "slk_"
	// maxIdentityBytes bounds what one identity header may carry.
	maxIdentityBytes = 256
)

// identify finds out whose request it is: by API key, else by identity headers
// of a trusted peer, else nobody's.
func (g *gate) identify(x *exchange) bool {
	x.trustedPeer = g.trusts(x.r.RemoteAddr)
	presented, bad := presentedKey(x.r.Header)
	switch {
	case bad != "":
		return g.refuse(x, refusedBadHeader, &problem{status: http.StatusBadRequest, title: "Bad header", detail: bad})
	case presented != "":
		return g.identifyByKey(x, presented)
	case !x.trustedPeer:
		return true
	}
	for _, f := range [...]struct {
		header string
		value  *string
	}{{headerTenant, &x.who.tenant}, {headerUser, &x.who.user}, {headerApplication, &x.who.application}} {
		if *f.value, bad = single(x.r.Header, f.header); bad != "" {
			return g.refuse(x, refusedBadHeader, &problem{status: http.StatusBadRequest, title: "Bad header", detail: bad})
		}
	}
	return true
}

func (g *gate) identifyByKey(x *exchange, presented string) bool {
	key := g.keys.find(presented)
	switch {
	case key == nil:
		x.w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		return g.refuse(x, refusedUnknownKey, &problem{status: http.StatusUnauthorized, title: "Unknown API key"})
	case key.status != keys.StatusActive:
		return g.refuse(x, refusedKey, &problem{kind: problemKeyRefused, status: http.StatusForbidden, title: "API key refused", detail: "The API key is " + key.status + "."})
	case key.expired(x.start):
		return g.refuse(x, refusedKey, &problem{kind: problemKeyRefused, status: http.StatusForbidden, title: "API key refused", detail: "The API key is expired."})
	}
	x.who = identity{tenant: key.tenant, user: key.user, application: key.application, key: key}
	return true
}

// presentedKey returns the API key of a request, empty without one; bad says
// what is wrong with the header it came in.
func presentedKey(h http.Header) (key, bad string) {
	if key, bad = single(h, headerAPIKey); key != "" || bad != "" {
		return key, bad
	}
	for _, value := range h[headerAuthorization] {
		token := ourBearer(value)
		switch {
		case token == "":
		case key != "":
			return "", headerAuthorization + " carries more than one API key"
		case len(token) > maxIdentityBytes:
			return "", headerAuthorization + " carries an API key that is too long"
		default:
			key = token
		}
	}
	return key, ""
}

// ourBearer returns the token of an Authorization value when it is one of our
// keys by its looks, else "".
func ourBearer(value string) string {
	const scheme = "bearer "
	if len(value) < len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return ""
	}
	token := strings.TrimSpace(value[len(scheme):])
	if !strings.HasPrefix(token, keyPrefix) {
		return ""
	}
	return token
}

// single returns the header's only value. Two values, or one that no rule or
// log should carry, are refused by the header's name, never by their content.
func single(h http.Header, name string) (value, bad string) {
	values := h[name]
	switch {
	case len(values) == 0:
		return "", ""
	case len(values) > 1:
		return "", name + " is there more than once"
	case len(values[0]) > maxIdentityBytes:
		return "", name + " is longer than 256 bytes"
	case !plainText(values[0]):
		return "", name + " is not plain UTF-8 text"
	}
	return values[0], ""
}

// plainText: valid UTF-8 without control characters (C0, DEL, C1).
func plainText(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return plainRunes(s)
		}
		if s[i] < 0x20 || s[i] == 0x7f {
			return false
		}
	}
	return true
}

func plainRunes(s string) bool {
	for _, r := range s {
		if r < 0x20 || (r >= 0x7f && r < 0xa0) {
			return false
		}
	}
	return utf8.ValidString(s)
}

// trusts reports whether the peer may name identities.
func (g *gate) trusts(remote string) bool {
	if len(g.trusted) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap()
	for _, p := range g.trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// expired reports whether the key has ended at the given time.
func (k *apiKey) expired(at time.Time) bool {
	return !k.expires.IsZero() && !at.Before(k.expires)
}
