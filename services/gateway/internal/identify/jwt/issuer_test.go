package jwt

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	gojwt "github.com/golang-jwt/jwt/v5"
)

const (
	testIssuer   = "https://issuer.test/"
	testAudience = "gate"
)

// testNow is the time of the tests that do not run in a bubble of their own.
var testNow = time.Unix(1_900_000_000, 0)

// signer is a key an issuer signs with.
type signer struct {
	kid, alg string
	key      crypto.Signer
}

// signers are made once: RSA keys take their time.
var signers = sync.OnceValue(func() map[string]signer {
	out := map[string]signer{}
	for _, s := range []signer{
		{"rsa1", "RS256", must(rsa.GenerateKey(rand.Reader, 2048))},
		{"rsa2", "RS256", must(rsa.GenerateKey(rand.Reader, 2048))},
		{"ec1", "ES256", must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))},
		{"ec384", "ES384", must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))},
		{"ed1", "EdDSA", newEd25519()},
		{"ed2", "EdDSA", newEd25519()},
	} {
		out[s.kid] = s
	}
	return out
})

func must[K any](key K, err error) K {
	if err != nil {
		panic(err)
	}
	return key
}

func newEd25519() ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return must(key, err)
}

// public is the key as an issuer publishes it.
func (s signer) public() jwkset.JWKMarshal {
	jwk, err := jwkset.NewJWKFromKey(s.key.Public(), jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{
		ALG: jwkset.ALG(s.alg), KID: s.kid, USE: jwkset.UseSig,
	}})
	return must(jwk, err).Marshal()
}

// document is the key set of the named signers.
func document(kids ...string) []byte {
	set := jwkset.JWKSMarshal{Keys: []jwkset.JWKMarshal{}}
	for _, kid := range kids {
		set.Keys = append(set.Keys, signers()[kid].public())
	}
	return must(json.Marshal(set))
}

// goodClaims are those of a token that is accepted at now.
func goodClaims(now time.Time) gojwt.MapClaims {
	return gojwt.MapClaims{
		"iss": testIssuer, "aud": testAudience, "exp": now.Add(time.Hour).Unix(),
		"tenant_id": "acme", "sub": "u1", "azp": "app",
	}
}

// with returns claims with some changed; nil takes one away.
func with(claims gojwt.MapClaims, changes gojwt.MapClaims) gojwt.MapClaims {
	out := maps.Clone(claims)
	for name, value := range changes {
		if value == nil {
			delete(out, name)
			continue
		}
		out[name] = value
	}
	return out
}

// token signs claims; header entries are added, nil takes one away.
func (s signer) token(claims gojwt.MapClaims, header ...map[string]any) string {
	t := gojwt.NewWithClaims(gojwt.GetSigningMethod(s.alg), claims)
	t.Header["kid"] = s.kid
	for _, h := range header {
		for name, value := range h {
			if value == nil {
				delete(t.Header, name)
				continue
			}
			t.Header[name] = value
		}
	}
	return must(t.SignedString(s.key))
}

// endpoint publishes a key set over HTTP and counts who asks.
type endpoint struct {
	handler atomic.Pointer[http.HandlerFunc]
	asked   atomic.Int64
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.asked.Add(1)
	(*e.handler.Load())(w, r)
}

func (e *endpoint) handle(h http.HandlerFunc) { e.handler.Store(&h) }

func (e *endpoint) publish(doc []byte) {
	e.handle(func(w http.ResponseWriter, _ *http.Request) { w.Write(doc) })
}

// RoundTrip answers in memory, for bubbles of synctest: time does not move
// there while a goroutine waits for a real connection.
func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func testConfig(url string) Config {
	return Config{Issuers: []Issuer{{
		Issuer: testIssuer, JWKSURL: url, Audiences: []string{testAudience}, AllowHTTP: true,
		Algorithms: []string{"RS256", "ES256", "EdDSA"},
	}}}
}

// serve starts an endpoint and a verifier of it at testNow, which has fetched
// nothing yet.
func serve(t testing.TB, change func(*Config)) (*endpoint, *Verifier) {
	t.Helper()
	e := &endpoint{}
	e.publish(document("rsa1", "ec1", "ed1"))
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	cfg := testConfig(server.URL + "/keys?secret=hush")
	if change != nil {
		change(&cfg)
	}
	v, err := New(cfg, Deps{Now: func() time.Time { return testNow }})
	if err != nil {
		t.Fatal(err)
	}
	return e, v
}

// serveFetched is serve after a successful fetch.
func serveFetched(t testing.TB, change func(*Config)) (*endpoint, *Verifier) {
	t.Helper()
	e, v := serve(t, change)
	if err := v.sources[0].fetch(context.Background()); err != nil {
		t.Fatal(err)
	}
	return e, v
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(fmt.Sprint("not within two minutes: ", what))
		}
	}
}
