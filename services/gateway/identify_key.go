package gateway

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/keys"
)

// keyPrefix marks our keys among bearer tokens.
const keyPrefix = "slk_"

func (g *gate) identifyByKey(x *exchange, presented string) bool {
	key := g.keys.find(presented)
	switch {
	case key == nil:
		challenge(x, invalidToken)
		return g.refuse(x, refusedUnknownKey, &problem{status: http.StatusUnauthorized, title: "Unknown API key"})
	case key.status != keys.StatusActive:
		return g.refuse(x, refusedKey, &problem{kind: problemKeyRefused, status: http.StatusForbidden, title: "API key refused", detail: "The API key is " + key.status + "."})
	case key.expired(x.start):
		return g.refuse(x, refusedKey, &problem{kind: problemKeyRefused, status: http.StatusForbidden, title: "API key refused", detail: "The API key is expired."})
	}
	x.who = identity{tenant: key.tenant, user: key.user, application: key.application, key: key}
	return true
}

// Challenges of a 401 (RFC 6750, section 3).
const (
	anyBearer    = "Bearer"
	invalidToken = `Bearer error="invalid_token"`
)

func challenge(x *exchange, with string) { x.w.Header().Set("WWW-Authenticate", with) }

// presentedKey returns the API key of a request, empty without one; bad says
// what is wrong with the header it came in.
func presentedKey(h http.Header) (key, bad string) {
	if key, bad = single(h, headerAPIKey); key != "" || bad != "" {
		return key, bad
	}
	for _, value := range h[headerAuthorization] {
		token := ourBearer(value)
		switch {
		case token == "" && carriesKey(value):
			return "", headerAuthorization + " carries an API key, but not as Bearer, a space and the key"
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

const bearerScheme = "Bearer"

// bearer returns the token of an Authorization value, empty where the scheme
// is another one. A tab for the space is wrong (RFC 9110, section 11.4), but
// some services read it as one: a token must not pass unseen for it.
func bearer(value string) string {
	after := len(bearerScheme)
	if len(value) <= after || !strings.EqualFold(value[:after], bearerScheme) || value[after] != ' ' && value[after] != '\t' {
		return ""
	}
	return strings.TrimSpace(value[after:])
}

// ourBearer returns the token of an Authorization value when it is one of our
// keys by its looks, else "".
func ourBearer(value string) string {
	if token := bearer(value); strings.HasPrefix(token, keyPrefix) && value[len(bearerScheme)] == ' ' {
		return token
	}
	return ""
}

// carriesKey reports whether one of our keys stands anywhere in an
// Authorization value, in whatever form: a key is never forwarded, and one in
// the wrong place would be. The prefix within a longer word is none: one in
// some thousands of other tokens (base64url) has it there by chance.
func carriesKey(value string) bool {
	for from := 0; ; {
		at := strings.Index(value[from:], keyPrefix)
		if at < 0 {
			break
		}
		at += from
		if at == 0 || !inWord(value[at-1]) {
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
	return err == nil && carriesKey(string(userAndPassword))
}

// inWord: a character of token68 (RFC 9110, section 11.2), without the = that
// only ends one.
func inWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~+/", c) >= 0
}

// expired reports whether the key has ended at the given time.
func (k *apiKey) expired(at time.Time) bool {
	return !k.expires.IsZero() && !at.Before(k.expires)
}
