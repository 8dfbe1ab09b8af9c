package jwt

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/MicahParks/jwkset"
)

func TestParseKeySetLeavesOutWhatIsUnusable(t *testing.T) {
	t.Parallel()
	edit := func(kid string, change func(*jwkset.JWKMarshal)) string {
		jwk := signers()[kid].public()
		change(&jwk)
		return string(must(json.Marshal(jwk)))
	}
	good := edit("ed1", func(*jwkset.JWKMarshal) {})
	for name, c := range map[string]struct{ key, want string }{
		"for encryption":    {edit("rsa1", func(k *jwkset.JWKMarshal) { k.USE = jwkset.UseEnc }), "use"},
		"for wrapping":      {edit("rsa1", func(k *jwkset.JWKMarshal) { k.KEYOPS = []jwkset.KEYOPS{jwkset.KeyOpsWrapKey} }), "key_ops"},
		"alg not pinned":    {edit("rsa1", func(k *jwkset.JWKMarshal) { k.ALG = "RS512" }), "no allowed algorithm"},
		"curve not pinned":  {edit("ec384", func(*jwkset.JWKMarshal) {}), "no allowed algorithm"},
		"curve, alg open":   {edit("ec384", func(k *jwkset.JWKMarshal) { k.ALG = "" }), "no allowed algorithm"},
		"alg of other type": {edit("ec1", func(k *jwkset.JWKMarshal) { k.ALG = "RS256" }), "no allowed algorithm"},
		"symmetric":         {`{"kty":"oct","kid":"s","k":"c2VjcmV0"}`, "symmetric"},
		"private":           {edit("ed2", func(k *jwkset.JWKMarshal) { k.D = "AAAA" }), "private part"},
		"short RSA":         {shortRSA(), "1024 bits"},
		"even RSA exponent": {edit("rsa1", func(k *jwkset.JWKMarshal) { k.E = "AQAA" }), "exponent"},
		"huge RSA exponent": {edit("rsa1", func(k *jwkset.JWKMarshal) { k.E = "AQAAAAE" }), "exponent"},
		"point off curve":   {edit("ec1", func(k *jwkset.JWKMarshal) { k.Y = k.X }), "curve"},
		"short Ed25519":     {edit("ed1", func(k *jwkset.JWKMarshal) { k.X = "AAAA" }), "32 bytes"},
		"X25519":            {edit("ed1", func(k *jwkset.JWKMarshal) { k.CRV = jwkset.CrvX25519 }), "no allowed algorithm"},
		"unknown type":      {`{"kty":"AKP","kid":"pq","alg":"ML-DSA-44","pub":"AAAA"}`, "AKP"},
		"no object":         {`"key"`, "not a JSON web key"},
		"null":              {`null`, "unsupported"},
		"kid is a number":   {`{"kty":"OKP","kid":5}`, "not a JSON web key"},
		"kid twice":         {edit("ed2", func(k *jwkset.JWKMarshal) { k.KID = "ed1" }), "twice"},
	} {
		set, skipped, err := parseKeySet([]byte(`{"keys":[`+good+`,`+c.key+`]}`), defaultAlgorithms)
		if err != nil {
			t.Errorf("%s spoils the others: %v", name, err)
			continue
		}
		if set.size != 1 || set.find("ed1", "EdDSA") == nil || set.find("", "EdDSA") == nil {
			t.Errorf("%s: %d keys, want the good one alone", name, set.size)
		}
		if len(skipped) != 1 || !strings.Contains(skipped[0].Error(), c.want) {
			t.Errorf("%s: left out for %v, want %q", name, skipped, c.want)
		}
	}
}

// shortRSA is a key no real signer should have.
func shortRSA() string {
	key := must(rsa.GenerateKey(rand.Reader, 1024))
	jwk, err := jwkset.NewJWKFromKey(&key.PublicKey, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: "short"}})
	return string(must(json.Marshal(must(jwk, err).Marshal())))
}

func TestParseKeySetTakes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*jwkset.JWKMarshal){
		"without alg":               func(k *jwkset.JWKMarshal) { k.ALG = "" },
		"without use":               func(k *jwkset.JWKMarshal) { k.USE = "" },
		"with key_ops":              func(k *jwkset.JWKMarshal) { k.KEYOPS = []jwkset.KEYOPS{jwkset.KeyOpsVerify} },
		"alg by RFC 9864":           func(k *jwkset.JWKMarshal) { k.ALG = "Ed25519" },
		"with a broken certificate": func(k *jwkset.JWKMarshal) { k.X5C, k.X5U = []string{"!"}, "http://x.test" },
	} {
		jwk := signers()["ed1"].public()
		change(&jwk)
		set, skipped, err := parseKeySet([]byte(`{"keys":[`+string(must(json.Marshal(jwk)))+`]}`), defaultAlgorithms)
		if err != nil || len(skipped) != 0 || set.find("ed1", "EdDSA") == nil {
			t.Errorf("%s: %v, %v", name, skipped, err)
		}
	}
}

func TestParseKeySetBounds(t *testing.T) {
	t.Parallel()
	keys := strings.Repeat(`{},`, maxKeys) + `{}`
	if _, _, err := parseKeySet([]byte(`{"keys":[`+keys+`]}`), defaultAlgorithms); err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxKeys)) {
		t.Error("too many keys:", err)
	}
	set, _, err := parseKeySet([]byte(`{"keys":[]}`), defaultAlgorithms)
	if err != nil || set.size != 0 {
		t.Error("an empty set is the issuer's word:", err)
	}
}
