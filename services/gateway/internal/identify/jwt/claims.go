package jwt

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	gojwt "github.com/golang-jwt/jwt/v5"
)

// Identity is whose request it is, as a verified token says. A part that the
// token does not carry is empty; each is valid UTF-8 of at most 256 bytes
// without control characters.
type Identity struct {
	Tenant, User, Application string
	// Expires is the token's exp, in whole seconds. The token is still taken
	// for the issuer's leeway after it.
	Expires time.Time
}

// maxClaimBytes bounds a part of an identity: it becomes part of keys, events
// and logs.
const maxClaimBytes = 256

// maxNumericDate is the end of the year 9999 in seconds. Beyond it the
// conversion from JSON's floats is not defined.
const maxNumericDate = 253402300799

// claimPath is where one part of the identity is found.
type claimPath struct {
	name     string
	steps    []string // name split at its dots
	required bool
}

func newClaimPath(name, dimension string, required []string) claimPath {
	return claimPath{name: name, steps: strings.Split(name, "."), required: slices.Contains(required, dimension)}
}

// read returns the claim's value, empty where it is absent and not required.
func (p *claimPath) read(claims gojwt.MapClaims) (string, error) {
	value, found := claims[p.name]
	if !found {
		value, found = dig(claims, p.steps)
	}
	if !found || value == nil || value == "" {
		if p.required {
			return "", &ClaimError{Claim: p.name, Reason: ErrMissingClaim}
		}
		return "", nil
	}
	text, ok := value.(string)
	if !ok || len(text) > maxClaimBytes || !plain(text) {
		return "", &ClaimError{Claim: p.name, Reason: ErrBadClaim}
	}
	return text, nil
}

func dig(object map[string]any, steps []string) (any, bool) {
	for _, step := range steps[:len(steps)-1] {
		inner, ok := object[step].(map[string]any)
		if !ok {
			return nil, false
		}
		object = inner
	}
	value, found := object[steps[len(steps)-1]]
	return value, found
}

// plain refuses control characters (C0, DEL, C1), and U+FFFD: the JSON decoder
// puts it in place of whatever is not UTF-8, so two names could become one.
func plain(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return false
		}
	}
	return true
}

// lifetime is when a token counts, leeway included: from <= now < until. A
// zero from has always begun.
type lifetime struct{ from, until time.Time }

// check is nil while the token counts.
func (l *lifetime) check(now time.Time) error {
	switch {
	case !now.Before(l.until):
		return ErrExpired
	case now.Before(l.from):
		return ErrNotYetValid
	}
	return nil
}

// readLifetime returns the token's lifetime and its exp. A token without exp
// would count for ever and is refused.
func readLifetime(claims gojwt.MapClaims, leeway time.Duration) (lifetime, time.Time, error) {
	exp, err := readDate(claims, "exp")
	if err != nil {
		return lifetime{}, time.Time{}, err
	}
	if exp.IsZero() {
		return lifetime{}, time.Time{}, &ClaimError{Claim: "exp", Reason: ErrMissingClaim}
	}
	nbf, err := readDate(claims, "nbf")
	if err != nil {
		return lifetime{}, time.Time{}, err
	}
	l := lifetime{until: exp.Add(leeway)}
	if !nbf.IsZero() {
		l.from = nbf.Add(-leeway)
	}
	return l, exp, nil
}

// readDate reads a NumericDate (RFC 7519, 2), cut to whole seconds; zero
// without one.
func readDate(claims gojwt.MapClaims, name string) (time.Time, error) {
	value, found := claims[name]
	if !found || value == nil {
		return time.Time{}, nil
	}
	seconds, ok := value.(float64)
	if !ok || seconds < 0 || seconds > maxNumericDate {
		return time.Time{}, &ClaimError{Claim: name, Reason: ErrBadClaim}
	}
	return time.Unix(int64(seconds), 0).UTC(), nil
}

// checkAudience wants one of the token's audiences among the configured.
func checkAudience(claims gojwt.MapClaims, allowed []string) error {
	if slices.Contains(allowed, anyAudience) {
		return nil
	}
	present, err := claims.GetAudience()
	if err != nil {
		return &ClaimError{Claim: "aud", Reason: ErrBadClaim}
	}
	for _, audience := range present {
		if slices.Contains(allowed, audience) {
			return nil
		}
	}
	return ErrAudience
}
