package controlplane

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
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

// tokenTable holds the hashes of all tokens.
type tokenTable []tokenEntry

type tokenEntry struct {
	sum [sha256.Size]byte
	who principal
}

func newTokenTable(tokens []Token) (tokenTable, error) {
	table := make(tokenTable, len(tokens))
	for i, t := range tokens {
		if _, err := hex.Decode(table[i].sum[:], []byte(t.SHA256)); err != nil {
			return nil, fmt.Errorf("decode hash of token %q: %w", t.Name, err)
		}
		table[i].who = principal{name: t.Name, admin: t.Role == RoleAdmin}
	}
	return table, nil
}

// find compares the hash of a presented token with every entry, in a time
// that does not depend on which one matches, or whether one does.
func (t tokenTable) find(presented string) (principal, bool) {
	sum := sha256.Sum256([]byte(presented))
	found := -1
	for i := range t {
		equal := subtle.ConstantTimeCompare(sum[:], t[i].sum[:])
		found = subtle.ConstantTimeSelect(equal, i, found)
	}
	if found < 0 {
		return principal{}, false
	}
	return t[found].who, true
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
		return who, newProblem(http.StatusForbidden, "read-only", fmt.Sprintf("token %q may read only; this needs one with role admin", who.name))
	}
	return who, nil
}

func unauthorized(challenge, detail string) *Problem {
	p := newProblem(http.StatusUnauthorized, "unauthorized", detail)
	p.header = http.Header{"Www-Authenticate": {challenge}}
	return p
}
