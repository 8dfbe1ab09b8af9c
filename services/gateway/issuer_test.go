package gateway

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify/jwt"
)

// issuerPatience is how long tests wait for a fetch: a failed one is repeated
// after a second, and the machine may be busy.
const issuerPatience = 20 * time.Second

// issuer signs tokens and publishes its key over HTTP, as a login service does.
type issuer struct {
	name   string
	server *httptest.Server
	key    ed25519.PrivateKey
	away   atomic.Bool
}

func newIssuer(t testing.TB, name string) *issuer {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{name: name, key: key}
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if i.away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "OKP", "crv": "Ed25519", "kid": "k1", "use": "sig", "alg": "EdDSA", "x": base64.RawURLEncoding.EncodeToString(public),
		}}})
	}))
	t.Cleanup(i.server.Close)
	return i
}

func (i *issuer) config() jwt.Issuer {
	return jwt.Issuer{
		Issuer: i.name, JWKSURL: i.server.URL, Audiences: []string{"gate"}, Algorithms: []string{"EdDSA"}, AllowHTTP: true,
		Claims: jwt.Claims{Tenant: "org.id"},
	}
}

// claims are those of a token that is good at noon; changes with a nil value
// take one away.
func (i *issuer) claims(changes map[string]any) map[string]any {
	all := map[string]any{
		"iss": i.name, "aud": "gate", "exp": noon.Add(time.Hour).Unix(), "sub": "u1", "azp": "shop", "org": map[string]any{"id": "acme"},
	}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

func (i *issuer) token(t testing.TB, changes map[string]any) string {
	t.Helper()
	return sign(t, i.key, map[string]any{"alg": "EdDSA", "kid": "k1", "typ": "JWT"}, i.claims(changes))
}

// sign makes the compact form (RFC 7515, section 3.1).
func sign(t testing.TB, key ed25519.PrivateKey, header, claims map[string]any) string {
	t.Helper()
	text := segment(t, header) + "." + segment(t, claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(text)))
}

func segment(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// startVerifier runs a verifier of the issuers at noon, as Service.Run does.
func startVerifier(t testing.TB, issuers ...*issuer) *jwt.Verifier {
	t.Helper()
	var cfg jwt.Config
	for _, i := range issuers {
		cfg.Issuers = append(cfg.Issuers, i.config())
	}
	v, err := jwt.New(cfg, jwt.Deps{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	running := start(ctx, v.Run)
	t.Cleanup(func() {
		cancel()
		if err := running.stop(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// fetched waits until the keys of all issuers are there.
func fetched(t testing.TB, v *jwt.Verifier) *jwt.Verifier {
	t.Helper()
	servertest.Eventually(t, issuerPatience, "the issuers' keys", func() bool { return v.Ready() == nil })
	return v
}
