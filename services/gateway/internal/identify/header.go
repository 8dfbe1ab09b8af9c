package identify

import (
	"net/http"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// Headers that carry identities, in their canonical form.
const (
	HeaderAPIKey        = "X-Api-Key"
	HeaderAuthorization = "Authorization"
	HeaderTenant        = "X-Tenant-Id"
	HeaderUser          = "X-User-Id"
	HeaderApplication   = "X-Application-Id"
)

// MaxIdentityBytes bounds what one identity header may carry.
const MaxIdentityBytes = 256

func badHeader(detail string) *reject.Rejection {
	return &reject.Rejection{Reason: reject.BadHeader, Problem: reject.Problem{Status: http.StatusBadRequest, Title: "Bad header", Detail: detail}}
}

// single returns the header's only value. Two values, or one that no rule or log
// should carry, are refused by the header's name, never by their content.
func single(h http.Header, name string) (value, bad string) {
	values := h[name]
	switch {
	case len(values) == 0:
		return "", ""
	case len(values) > 1:
		return "", name + " is there more than once"
	case len(values[0]) > MaxIdentityBytes:
		return "", name + " is longer than 256 bytes"
	case !PlainText(values[0]):
		return "", name + " is not plain UTF-8 text"
	}
	return values[0], ""
}

// PlainText reports valid UTF-8 without control characters (C0, DEL, C1).
func PlainText(s string) bool {
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
