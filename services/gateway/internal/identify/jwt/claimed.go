package jwt

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// unread is why a token is refused that is not read as one: ours where it names
// a configured issuer all the same, else ErrMalformed. Some service behind may
// read it, so it must not pass for somebody else's.
func (v *Verifier) unread(token string, ours Reason) Reason {
	if v.byIssuer[claimedIssuer(token)] != nil {
		return ours
	}
	return ErrMalformed
}

// looseBase64 makes one spelling of base64 of all that readers are known to take.
var looseBase64 = strings.NewReplacer("+", "-", "/", "_", "=", "", "\r", "", "\n", "", "\t", "", " ", "")

// claimedIssuer is the iss of what some reader may take for a token, "" without
// one. Nothing but a refusal may follow from it.
func claimedIssuer(token string) (iss string) {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(looseBase64.Replace(payload))
	if err != nil {
		return ""
	}
	// Raw, since a claim that cannot be held (1e999) shall not hide the issuer.
	var claims map[string]json.RawMessage
	if json.Unmarshal(text, &claims) != nil || json.Unmarshal(claims["iss"], &iss) != nil {
		return ""
	}
	return iss
}
