package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// principal is who sent a request, as their token says. Nothing else of a
// request has a say in it.
type principal struct {
	name  string
	admin bool
}

// Token is one caller. Sum is the hash of the token, which is never kept.
type Token struct {
	Name  string
	Admin bool // else it may read only
	Sum   [sha256.Size]byte
}

// tokenTable holds the hashes of all tokens.
type tokenTable []Token

// find compares the hash of a presented token with every entry, in a time
// that does not depend on which one matches, or whether one does.
func (t tokenTable) find(presented string) (principal, bool) {
	sum := sha256.Sum256([]byte(presented))
	found := -1
	for i := range t {
		equal := subtle.ConstantTimeCompare(sum[:], t[i].Sum[:])
		found = subtle.ConstantTimeSelect(equal, i, found)
	}
	if found < 0 {
		return principal{}, false
	}
	return principal{name: t[found].Name, admin: t[found].Admin}, true
}

// authenticate answers who sent the request and whether they may; a problem
// says why not.
func (t tokenTable) authenticate(r *http.Request) (principal, *Problem) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return principal{}, unauthorized(`Bearer realm="sluice"`, "send a token as Authorization: Bearer …")
	}
	who, ok := t.find(token)
	if !ok {
		return principal{}, unauthorized(`Bearer realm="sluice", error="invalid_token"`, "the token is not known here")
	}
	if !who.admin && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return who, NewProblem(http.StatusForbidden, "read-only", fmt.Sprintf("token %q may read only; this needs one with role admin", who.name))
	}
	return who, nil
}

func unauthorized(challenge, detail string) *Problem {
	return NewProblem(http.StatusUnauthorized, "unauthorized", detail).SetHeader("Www-Authenticate", challenge)
}
