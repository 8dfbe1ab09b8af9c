package jwt

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
)

// maxTokenBytes bounds what is decoded, but for its issuer, before anything is
// known of a token.
const maxTokenBytes = 16 << 10

// Verify returns the identity a token proves, or why it is refused: a Reason,
// or a *ClaimError around one. The token is the bare compact form, without
// "Bearer". It never waits for a lock or the network. The error may be shown
// to the client.
func (v *Verifier) Verify(token string) (Identity, error) {
	if len(token) > maxTokenBytes {
		reason := v.unread(token, ErrTooLong)
		v.metrics.refuse(reason)
		return Identity{}, reason
	}
	now := v.now()
	var hash [sha256.Size]byte
	if v.cache != nil {
		var room [2 << 10]byte // of the stack; longer tokens cost an allocation
		hash = sha256.Sum256(append(room[:0], token...))
		if known := v.cache.find(&hash, now); known != nil {
			v.metrics.accepted.Inc()
			v.metrics.cacheHits.Inc()
			return known.identity, nil
		}
	}
	verified, err := v.judge(token, now)
	if err != nil {
		v.metrics.refuse(err)
		return Identity{}, err
	}
	v.metrics.accepted.Inc()
	if v.cache != nil {
		verified.hash = hash
		v.cache.add(verified)
	}
	return verified.identity, nil
}

// judge verifies a token that is not remembered.
func (v *Verifier) judge(token string, now time.Time) (*cached, error) {
	claims := gojwt.MapClaims{}
	s, keys, err := v.authenticate(token, claims)
	if err != nil {
		return nil, err
	}
	life, expires, err := readLifetime(claims, s.Leeway)
	if err != nil {
		return nil, err
	}
	if err := life.check(now); err != nil {
		return nil, err
	}
	if err := checkAudience(claims, s.Audiences); err != nil {
		return nil, err
	}
	who, err := s.identify(claims)
	if err != nil {
		return nil, err
	}
	who.Expires = expires
	return &cached{source: s, keys: keys, lifetime: life, identity: who}, nil
}

// authenticate fills claims and says whose they are and which key set held the
// key. Before the signature held it uses nothing of the token but iss, alg,
// kid and crit, and the pinned algorithm is settled before a key is looked up.
func (v *Verifier) authenticate(token string, claims gojwt.MapClaims) (*source, *keySet, error) {
	// Go's base64 skips line breaks; then one token would have many spellings.
	if strings.ContainsAny(token, "\r\n") {
		return nil, nil, v.unread(token, ErrBadForm)
	}
	parsed, _, err := v.parser.ParseUnverified(token, claims)
	// An algorithm the library does not know comes as unverifiable; whether
	// the token is meant for us is settled first.
	if err != nil && !errors.Is(err, gojwt.ErrTokenUnverifiable) {
		return nil, nil, v.unread(token, ErrBadForm)
	}
	issuer, err := claims.GetIssuer()
	if err != nil {
		return nil, nil, ErrMalformed
	}
	s := v.byIssuer[issuer]
	if s == nil {
		return nil, nil, ErrUnknownIssuer
	}
	kid, err := s.checkHeader(parsed.Header)
	if err != nil {
		return nil, nil, err
	}
	key, keys, err := s.key(kid, parsed.Method.Alg())
	if err != nil {
		return nil, nil, err
	}
	if err := parsed.Method.Verify(token[:strings.LastIndexByte(token, '.')], parsed.Signature, key); err != nil {
		return nil, nil, ErrSignature
	}
	return s, keys, nil
}

// checkHeader settles what may be done with the token at all and returns its
// kid, empty without one. Once it is nil, alg is one of the source's, so the
// library knows it too.
func (s *source) checkHeader(header map[string]any) (kid string, err error) {
	if _, critical := header["crit"]; critical {
		return "", ErrCritical
	}
	alg, ok := header["alg"].(string)
	if !ok || !slices.Contains(s.Algorithms, alg) {
		return "", ErrAlgorithm
	}
	value, found := header["kid"]
	if kid, ok = value.(string); found && !ok {
		return "", ErrBadForm
	}
	return kid, nil
}

// identify reads who a verified token speaks of.
func (s *source) identify(claims gojwt.MapClaims) (who Identity, err error) {
	if who.Tenant, err = s.tenant.read(claims); err != nil {
		return Identity{}, err
	}
	if who.User, err = s.user.read(claims); err != nil {
		return Identity{}, err
	}
	if who.Application, err = s.application.read(claims); err != nil {
		return Identity{}, err
	}
	return who, nil
}
