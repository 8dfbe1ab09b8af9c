package identify

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// OperatorToken is one operator. The token itself is never configured, only its hash.
type OperatorToken struct {
	Name   string `koanf:"name" doc:"Whose token it is, for logs."`
	SHA256 string `koanf:"sha256" doc:"SHA-256 of the token, in hexadecimal."`
}

// Operators are the holders of a list of tokens.
type Operators []operator

type operator struct {
	name string
	sum  [sha256.Size]byte
}

// NewOperators reads the tokens of a key of the configuration.
func NewOperators(key string, tokens []OperatorToken) (Operators, error) {
	all := make(Operators, len(tokens))
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

// Admit tells whose token a request carries, if it is one of them. It compares all
// hashes, in a time that does not depend on which one matches.
func (c Operators) Admit(r *http.Request) (name string, ok bool) {
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

// RefuseOperator answers who has no token of a key of the configuration.
func RefuseOperator(w http.ResponseWriter, key string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="sluice"`)
	(&reject.Problem{Status: http.StatusUnauthorized, Title: "Unauthorized",
		Detail: "Send a token of " + key + " as Authorization: Bearer …"}).Write(w)
}
