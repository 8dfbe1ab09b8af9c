package identify

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// keyPrefix marks our keys among Bearer tokens.
const keyPrefix = "slk_"

// presentedKey returns the API key of a request, empty without one; bad says
// what is wrong with the header it came in.
func presentedKey(h http.Header) (key, bad string) {
	if key, bad = single(h, HeaderAPIKey); key != "" || bad != "" {
		return key, bad
	}
	for _, value := range h[HeaderAuthorization] {
		token := ourBearer(value)
		switch {
		case token == "" && CarriesKey(value):
			return "", HeaderAuthorization + " carries an API key, but not as Bearer, a space and the key"
		case token == "":
		case key != "":
			return "", HeaderAuthorization + " carries more than one API key"
		case len(token) > MaxIdentityBytes:
			return "", HeaderAuthorization + " carries an API key that is too long"
		default:
			key = token
		}
	}
	return key, ""
}

const bearerScheme = "Bearer"

// Bearer returns the token of an Authorization value, empty where the scheme is
// another one. A tab in place of the space is wrong (RFC 9110, section 11.4), but
// some services accept it: a token must not pass unseen because of a tab.
func Bearer(value string) string {
	after := len(bearerScheme)
	if len(value) <= after || !strings.EqualFold(value[:after], bearerScheme) || value[after] != ' ' && value[after] != '\t' {
		return ""
	}
	return strings.TrimSpace(value[after:])
}

// ourBearer returns the token of an Authorization value if it looks like one of our
// keys, else "".
func ourBearer(value string) string {
	if token := Bearer(value); strings.HasPrefix(token, keyPrefix) && value[len(bearerScheme)] == ' ' {
		return token
	}
	return ""
}

// CarriesKey reports whether one of our keys stands anywhere in an
// Authorization value, in whatever form: a key in the wrong place must not be
// forwarded either. The prefix inside a longer word is no key: one in some
// thousands of other tokens (base64url) contains it by chance.
func CarriesKey(value string) bool {
	for from := 0; ; {
		at := strings.Index(value[from:], keyPrefix)
		if at < 0 {
			break
		}
		at += from
		if at == 0 || !inToken(value[at-1]) {
			return true
		}
		from = at + len(keyPrefix)
	}
	const basic = "basic "
	if len(value) < len(basic) || !strings.EqualFold(value[:len(basic)], basic) {
		return false
	}
	// curl -u KEY: and the like.
	userAndPassword, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value[len(basic):]))
	return err == nil && CarriesKey(string(userAndPassword))
}

// inToken: a character of token68 (RFC 9110, section 11.2), without the = that
// only ends one.
func inToken(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~+/", c) >= 0
}
