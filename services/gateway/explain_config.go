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

// callers are the hashes of all tokens.
type callers [][sha256.Size]byte

func (c *ExplainConfig) callers() (callers, error) {
	all := make(callers, len(c.Tokens))
	for i, t := range c.Tokens {
		sum, err := hex.DecodeString(t.SHA256)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("gateway.explain.tokens[%d] (%s): sha256 must be 64 hexadecimal digits", i, t.Name)
		}
		copy(all[i][:], sum)
	}
	return all, nil
}

// admit reports whether a request carries one of the tokens. It compares all
// hashes, in a time that does not depend on which one matches.
func (c callers) admit(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return false
	}
	sum := sha256.Sum256([]byte(token))
	found := 0
	for i := range c {
		found |= subtle.ConstantTimeCompare(sum[:], c[i][:])
	}
	return found == 1
}
