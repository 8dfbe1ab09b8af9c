package jwt

import (
	"errors"
	"testing"
)

// FuzzVerify: whatever arrives, Verify neither panics nor accepts anything but
// the tokens the issuer made, and says why in a Reason.
func FuzzVerify(f *testing.F) {
	_, v := serveFetched(f, nil)
	made := map[string]bool{}
	for _, kid := range []string{"rsa1", "ec1", "ed1", "ed2"} {
		token := signers()[kid].token(goodClaims(testNow))
		made[token] = true
		f.Add(token)
	}
	for _, seed := range []string{"", "..", "e30.e30.", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2lzc3Vlci50ZXN0LyJ9.", "eyJhbGciOiJSUzI1NiJ9.bnVsbA.AA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		who, err := v.Verify(token)
		var reason Reason
		switch {
		case err == nil && !made[token]:
			t.Errorf("accepted a token that was never made, as %+v", who)
		case err != nil && (!errors.As(err, &reason) || who != Identity{}):
			t.Errorf("refused with %v and %+v", err, who)
		}
	})
}

// FuzzParseKeySet: an issuer's document does not make the gate panic, and a
// set is given exactly when there is no error.
func FuzzParseKeySet(f *testing.F) {
	f.Add(document("rsa1", "ec1", "ec384", "ed1"))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"","y":"AA"},{"kty":"RSA","n":"","e":"AQAB"},null]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		set, _, err := parseKeySet(doc, []string{"RS256", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
		if (set == nil) != (err != nil) {
			t.Errorf("set %v and error %v", set, err)
		}
	})
}
