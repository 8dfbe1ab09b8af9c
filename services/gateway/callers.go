package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

// ExplainConfig says who may ask why a request would pass or not.
type ExplainConfig struct {
	Tokens []Token `koanf:"tokens" doc:"Bearer tokens that may call POST /v1/explain on the admin port. Without any, every call is refused."`
}

// Token is one caller. The token itself is never configured, only its hash.
type Token struct {
	Name   string `koanf:"name" doc:"Whose token it is, for logs."`
	SHA256 string `koanf:"sha256" doc:"SHA-256 of the token, in hexadecimal."`
}

// callers are those of a list of tokens.
type callers []caller

type caller struct {
	name string
	sum  [sha256.Size]byte
}

// newCallers reads the tokens of a key of the configuration.
func newCallers(key string, tokens []Token) (callers, error) {
	all := make(callers, len(tokens))
	for i, t := range tokens {
		sum, err := hex.DecodeString(t.SHA256)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("%s[%d] (%s): sha256 must be 64 hexadecimal digits", key, i, t.Name)
		}
		all[i].name = t.Name
		copy(all[i].sum[:], sum)
	}
	return all, nil
}

func (c *ExplainConfig) callers() (callers, error) {
	return newCallers("gateway.explain.tokens", c.Tokens)
}

func (c *ReservationsConfig) operators() (callers, error) {
	return newCallers("gateway.reservations.tokens", c.Tokens)
}

// admit tells whose token a request carries, if it is one of them. It compares all
// hashes, in a time that does not depend on which one matches.
func (c callers) admit(r *http.Request) (name string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", false
	}
	sum := sha256.Sum256([]byte(token))
	found := -1
	for i := range c {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], c[i].sum[:]), i, found)
	}
	if found < 0 {
		return "", false
	}
	return c[found].name, true
}

// refuseCaller answers who has no token of a key of the configuration.
func refuseCaller(w http.ResponseWriter, key string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="sluice"`)
	(&problem{kind: problemNone, status: http.StatusUnauthorized, title: "Unauthorized",
		detail: "Send a token of " + key + " as Authorization: Bearer …"}).write(w, nil)
}
