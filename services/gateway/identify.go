package gateway

import (
	"net/http"
	"net/netip"
	"unicode/utf8"
)

// Headers that carry identities, in their canonical form.
const (
	headerAPIKey        = "X-Api-Key"
	headerAuthorization = "Authorization"
	headerTenant        = "X-Tenant-Id"
	headerUser          = "X-User-Id"
	headerApplication   = "X-Application-Id"
)

// maxIdentityBytes bounds what one identity header may carry.
const maxIdentityBytes = 256

// identify finds out whose request it is: by API key, else by a token of a
// configured issuer, else by the headers of a trusted peer, else nobody's.
// Whatever proved it is the only word: identity headers beside it are ignored,
// even bad ones.
func (g *gate) identify(x *exchange) bool {
	x.trustedPeer = g.trusts(x.r.RemoteAddr)
	presented, bad := presentedKey(x.r.Header)
	switch {
	case bad != "":
		return g.refuseHeader(x, bad)
	case !g.takeCallersCost(x):
		return false
	case presented != "":
		return g.identifyByKey(x, presented)
	}
	if goOn := g.identifyByToken(x); !goOn || x.who.token != "" || !x.trustedPeer {
		return goOn
	}
	for _, f := range [...]struct {
		header string
		value  *string
	}{{headerTenant, &x.who.tenant}, {headerUser, &x.who.user}, {headerApplication, &x.who.application}} {
		if *f.value, bad = single(x.r.Header, f.header); bad != "" {
			return g.refuseHeader(x, bad)
		}
	}
	return true
}

func (g *gate) refuseHeader(x *exchange, detail string) bool {
	return g.refuse(x, refusedBadHeader, &problem{status: http.StatusBadRequest, title: "Bad header", detail: detail})
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
