package jwt

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
)

func TestVerifyAcceptsEveryAlgorithm(t *testing.T) {
	t.Parallel()
	all := []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"}
	e, v := serve(t, func(c *Config) { c.Issuers[0].Algorithms = all })
	// A key that leaves alg open serves all of its type.
	e.publish([]byte(strings.ReplaceAll(string(document("rsa1", "ec1", "ec384", "ed1")), `"alg":"RS256",`, "")))
	if err := v.sources[0].fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{"ES256": "ec1", "ES384": "ec384", "EdDSA": "ed1"}
	for _, alg := range all {
		s := signers()["rsa1"]
		if kid, ok := keys[alg]; ok {
			s = signers()[kid]
		}
		s.alg = alg
		got, err := v.Verify(s.token(goodClaims(testNow)))
		want := Identity{Tenant: "acme", User: "u1", Application: "app", Expires: testNow.Add(time.Hour).UTC()}
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", alg, got, err, want)
		}
	}
}

// segment spells a part of a token by hand.
func segment(v any) string { return base64.RawURLEncoding.EncodeToString(must(json.Marshal(v))) }

func TestVerifyRefusesForgedTokens(t *testing.T) {
	t.Parallel()
	_, v := serveFetched(t, nil)
	claims := goodClaims(testNow)
	rsa1, ed2 := signers()["rsa1"], signers()["ed2"]
	good := rsa1.token(claims)
	parts := strings.Split(good, ".")
	otherPayload := segment(with(claims, gojwt.MapClaims{"tenant_id": "globex"}))
	publicDER := must(x509.MarshalPKIXPublicKey(rsa1.key.Public()))
	hmac := gojwt.NewWithClaims(gojwt.SigningMethodHS256, claims)
	hmac.Header["kid"] = "rsa1"

	for name, c := range map[string]struct {
		token string
		want  Reason
	}{
		"empty":                       {"", ErrMalformed},
		"opaque":                      {"slk_0123456789", ErrMalformed},
		"two segments":                {parts[0] + "." + parts[1], ErrBadForm},
		"five segments (JWE)":         {good + ".AA.AA", ErrBadForm},
		"too long":                    {good + strings.Repeat("A", maxTokenBytes), ErrTooLong},
		"too long, and nobody's":      {strings.Repeat("A", maxTokenBytes+1), ErrMalformed},
		"padded":                      {good + "=", ErrBadForm},
		"line break in the signature": {parts[0] + "." + parts[1] + "." + parts[2][:8] + "\n" + parts[2][8:], ErrBadForm},
		"signature spelt otherwise":   {good[:len(good)-1] + string(good[len(good)-1]+1), ErrBadForm}, // by its last bits, which mean nothing
		"padded segments":             {base64.URLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"rsa1"}`)) + "." + parts[1] + "." + parts[2], ErrBadForm},
		"in the other base64":         {parts[0] + "." + base64.StdEncoding.EncodeToString(must(json.Marshal(with(claims, gojwt.MapClaims{"note": "ÿþýüûúùø"})))) + "." + parts[2], ErrBadForm},
		"a number out of range":       {rsa1.token(with(claims, gojwt.MapClaims{"n": json.RawMessage("1e999")})), ErrBadForm},
		"signed, kid is a number":     {rsa1.token(claims, map[string]any{"kid": 7}), ErrBadForm},
		"foreign and padded":          {parts[0] + "." + base64.URLEncoding.EncodeToString([]byte(`{"iss":"theirs"}`)) + ".AA", ErrMalformed},
		"header is no object":         {segment("x") + "." + parts[1] + "." + parts[2], ErrBadForm},
		"header null":                 {segment(nil) + "." + parts[1] + "." + parts[2], ErrAlgorithm},
		"payload null":                {parts[0] + "." + segment(nil) + "." + parts[2], ErrUnknownIssuer},
		"payload is a list":           {parts[0] + "." + segment([]int{1}) + "." + parts[2], ErrMalformed},
		"kid is a number":             {segment(map[string]any{"alg": "RS256", "kid": 1}) + "." + parts[1] + "." + parts[2], ErrBadForm},
		"iss is a number":             {rsa1.token(with(claims, gojwt.MapClaims{"iss": 7})), ErrMalformed},
		"no iss":                      {rsa1.token(with(claims, gojwt.MapClaims{"iss": nil})), ErrUnknownIssuer},
		"wrong iss":                   {rsa1.token(with(claims, gojwt.MapClaims{"iss": "https://issuer.test"})), ErrUnknownIssuer},
		"foreign HS256":               {must(gojwt.NewWithClaims(gojwt.SigningMethodHS256, gojwt.MapClaims{"iss": "theirs"}).SignedString([]byte("k"))), ErrUnknownIssuer},
		"crit":                        {rsa1.token(claims, map[string]any{"crit": []string{"b64"}, "b64": true}), ErrCritical},
		"crit null":                   {rsa1.token(claims, map[string]any{"crit": json.RawMessage("null")}), ErrCritical},
		"alg none":                    {must(gojwt.NewWithClaims(gojwt.SigningMethodNone, claims).SignedString(gojwt.UnsafeAllowNoneSignatureType)), ErrAlgorithm},
		"alg None":                    {segment(map[string]any{"alg": "None", "kid": "rsa1"}) + "." + parts[1] + ".", ErrAlgorithm},
		"no alg":                      {segment(map[string]any{"kid": "rsa1"}) + "." + parts[1] + "." + parts[2], ErrAlgorithm},
		"alg is a list":               {segment(map[string]any{"alg": []string{"RS256"}}) + "." + parts[1] + "." + parts[2], ErrAlgorithm},
		"HS256 by the public key":     {must(hmac.SignedString(publicDER)), ErrAlgorithm},
		"alg of the key, not pinned":  {signer{"rsa1", "RS512", rsa1.key}.token(claims), ErrAlgorithm},
		"pinned alg of another key":   {segment(map[string]any{"alg": "ES256", "kid": "rsa1"}) + "." + parts[1] + "." + parts[2], ErrUnknownKey},
		"unknown kid":                 {signer{"rsa9", "RS256", rsa1.key}.token(claims), ErrUnknownKey},
		"kid of another key":          {signer{"rsa1", "RS256", signers()["rsa2"].key}.token(claims), ErrSignature},
		"key brought along":           {ed2.token(claims, map[string]any{"kid": "ed1", "jwk": ed2.public()}), ErrSignature},
		"tampered payload":            {parts[0] + "." + otherPayload + "." + parts[2], ErrSignature},
		"no signature":                {parts[0] + "." + parts[1] + ".", ErrSignature},
		"ES256 signature of zeros":    {segment(map[string]any{"alg": "ES256", "kid": "ec1"}) + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)), ErrSignature},
		"forged and expired":          {signer{"ed1", "EdDSA", ed2.key}.token(with(claims, gojwt.MapClaims{"exp": 1})), ErrSignature},
	} {
		got, err := v.Verify(c.token)
		if !errors.Is(err, c.want) || got != (Identity{}) {
			t.Errorf("%s: got %+v, %v; want %v", name, got, err, c.want)
		}
		if err != nil && len(parts[1]) > 8 && strings.Contains(err.Error(), parts[1][:8]) {
			t.Errorf("%s: the error holds the token: %v", name, err)
		}
	}
	if _, err := v.Verify(good); err != nil {
		t.Fatal("the token they are forged from:", err)
	}
}

func TestVerifyWithoutKid(t *testing.T) {
	t.Parallel()
	e, v := serveFetched(t, nil)
	noKid := map[string]any{"kid": nil}
	for _, kid := range []string{"rsa1", "ec1", "ed1"} {
		if _, err := v.Verify(signers()[kid].token(goodClaims(testNow), noKid)); err != nil {
			t.Errorf("the only key of its algorithm, %s: %v", kid, err)
		}
	}
	e.publish(document("ed1", "ed2", "rsa1"))
	if err := v.sources[0].fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(signers()["ed1"].token(goodClaims(testNow), noKid)); !errors.Is(err, ErrUnknownKey) {
		t.Error("two keys of the algorithm:", err)
	}
	if _, err := v.Verify(signers()["rsa1"].token(goodClaims(testNow), noKid)); err != nil {
		t.Error("still one key of the other algorithm:", err)
	}
}

func TestVerifyPinsPerIssuer(t *testing.T) {
	t.Parallel()
	_, v := serveFetched(t, func(c *Config) {
		other := c.Issuers[0]
		c.Issuers[0].Algorithms = []string{"EdDSA"}
		other.Issuer, other.Algorithms = "https://other.test/", []string{"RS256"}
		c.Issuers = append(c.Issuers, other)
	})
	claims := goodClaims(testNow)
	if _, err := v.Verify(signers()["ed1"].token(claims)); err != nil {
		t.Error("pinned:", err)
	}
	if _, err := v.Verify(signers()["rsa1"].token(claims)); !errors.Is(err, ErrAlgorithm) {
		t.Error("pinned for the other issuer only:", err)
	}
	claims["iss"] = "https://other.test/"
	if _, err := v.Verify(signers()["rsa1"].token(claims)); !errors.Is(err, ErrNoKeys) {
		t.Error("the other issuer's keys were not fetched, and the first one's must not serve:", err)
	}
}

func TestVerifyWithoutIssuers(t *testing.T) {
	t.Parallel()
	v, err := New(Config{}, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(signers()["ed1"].token(goodClaims(testNow))); !errors.Is(err, ErrUnknownIssuer) {
		t.Error(err)
	}
	if err := v.Ready(); err != nil {
		t.Error(err)
	}
}
