package controlplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/schemas/openapi"
	"github.com/sluice-platform/sluice/services/controlplane"
)

// The tokens of all tests: dev-admin, dev-readonly.
const (
	adminToken    = "dev-admin"
	readOnlyToken = "dev-readonly"
)

// noUsage is a usage store for tests that ask it nothing.
type noUsage struct{}

func (noUsage) Search(context.Context, usagestore.Query) (usagestore.Page, error) {
	return usagestore.Page{}, nil
}

func (noUsage) Get(context.Context, string) (usage.Event, error) {
	return usage.Event{}, usagestore.ErrNotFound
}

func (noUsage) Days(context.Context, usagestore.DaysQuery) ([]usagestore.DaySum, error) {
	return nil, nil
}

func testConfig() controlplane.Config {
	cfg := controlplane.DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	cfg.Tokens = []controlplane.Token{
		{Name: "alice", Role: controlplane.RoleAdmin, SHA256: hashOf(adminToken)},
		{Name: "rita", Role: controlplane.RoleReadOnly, SHA256: hashOf(readOnlyToken)},
	}
	return cfg
}

// newAPI builds a control plane over a database; an empty dsn is one that is away.
func newAPI(t testing.TB, dsn string) *controlplane.Service {
	t.Helper()
	return newAPIWith(t, dsn, controlplane.Deps{}, nil)
}

// newAPIWith takes what else the control plane is handed, and who watches its
// statements, nil for nobody.
func newAPIWith(t testing.TB, dsn string, deps controlplane.Deps, tracer pgx.QueryTracer) *controlplane.Service {
	t.Helper()
	if dsn == "" {
		dsn = "postgres://nobody@127.0.0.1:1/none?sslmode=disable&connect_timeout=1"
	}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	deps.Pool, deps.Usage = pool, noUsage{}
	s, err := controlplane.New(testConfig(), deps)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// request is one call in a test; the zero token is the admin's, "-" none.
type request struct {
	method, path, body, token string
	header                    map[string]string
}

func (r request) do(t testing.TB, h http.Handler) *answer {
	t.Helper()
	req := httptest.NewRequest(r.method, "http://sluice.test"+r.path, strings.NewReader(r.body))
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	switch r.token {
	case "":
		req.Header.Set("Authorization", "Bearer "+adminToken)
	case "-":
	default:
		req.Header.Set("Authorization", r.token)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return &answer{ResponseRecorder: rec}
}

type answer struct{ *httptest.ResponseRecorder }

// problem decodes the answer as a problem and holds that it is one.
func (a *answer) problem(t testing.TB) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil {
		t.Fatalf("%d %q is no problem: %v", a.Code, a.Body, err)
	}
	if got := a.Header().Get("Content-Type"); got != "application/problem+json" || p.Status != a.Code || !strings.HasPrefix(p.Type, "urn:sluice:problem:") {
		t.Fatalf("%d %s %s is no problem+json", a.Code, got, a.Body)
	}
	return p
}

func TestCommittedContractIsTheServedOne(t *testing.T) {
	t.Parallel()
	spec, err := controlplane.Spec()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(spec, openapi.ControlPlane) {
		t.Error("schemas/openapi/controlplane.yaml differs from the code: run go generate in services/controlplane")
	}
	for _, known := range quotaevents.Types {
		if !bytes.Contains(spec, []byte("There is "+known)) {
			t.Errorf("a webhook's eventTypes are told without %s", known)
		}
	}
	api := newAPI(t, "")
	got := request{method: "GET", path: "/openapi.yaml", token: "-"}.do(t, api)
	if got.Code != http.StatusOK || !bytes.Equal(got.Body.Bytes(), spec) {
		t.Errorf("/openapi.yaml answers %d and another document", got.Code)
	}
	asJSON := request{method: "GET", path: "/openapi.json", token: "-"}.do(t, api)
	var doc struct {
		OpenAPI string         `json:"openapi"`
		Paths   map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(asJSON.Body.Bytes(), &doc); err != nil || !strings.HasPrefix(doc.OpenAPI, "3.1.") || len(doc.Paths) < 9 {
		t.Errorf("/openapi.json: %v, version %q, %d paths", err, doc.OpenAPI, len(doc.Paths))
	}
	docs := request{method: "GET", path: "/docs", token: "-"}.do(t, api)
	if docs.Code != http.StatusOK || !strings.Contains(docs.Body.String(), "/v1/rules/{id}") {
		t.Errorf("/docs answers %d", docs.Code)
	}
}

func TestHealthNeedsNoToken(t *testing.T) {
	t.Parallel()
	got := request{method: "GET", path: "/healthz", token: "-"}.do(t, newAPI(t, ""))
	if got.Code != http.StatusOK {
		t.Fatalf("answers %d", got.Code)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	api := newAPI(t, "")
	cases := []struct {
		name, method, token string
		want                int
	}{
		{"none", "GET", "-", 401},
		{"unknown", "GET", "Bearer nobody", 401},
		{"empty", "GET", "Bearer ", 401},
		{"other scheme", "GET", "Basic " + adminToken, 401},
		{"longer", "GET", "Bearer " + adminToken + "x", 401},
		{"hash in place of the token", "GET", "Bearer " + hashOf(adminToken), 401},
		{"readonly writes", "POST", "Bearer " + readOnlyToken, 403},
		{"readonly deletes", "DELETE", "Bearer " + readOnlyToken, 403},
		{"readonly reads", "GET", "Bearer " + readOnlyToken, 404},
		{"scheme in capitals", "GET", "BEARER " + readOnlyToken, 404},
		{"admin", "POST", "Bearer " + adminToken, 404},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := request{method: c.method, path: "/v1/nothing-here", token: c.token}.do(t, api)
			got.problem(t)
			if got.Code != c.want {
				t.Fatalf("answers %d, want %d", got.Code, c.want)
			}
			if challenge := got.Header().Get("WWW-Authenticate"); (c.want == 401) != strings.HasPrefix(challenge, "Bearer ") {
				t.Fatalf("WWW-Authenticate is %q", challenge)
			}
		})
	}
}

func TestDatabaseAwayIs503(t *testing.T) {
	t.Parallel()
	api := newAPI(t, "")
	for _, r := range []request{
		{method: "GET", path: "/v1/rules"},
		{method: "GET", path: "/v1/rules/a"},
		{method: "POST", path: "/v1/rules", body: goodRule},
		{method: "PUT", path: "/v1/rules/a", body: goodRule, header: map[string]string{"If-Match": "*"}},
		{method: "DELETE", path: "/v1/rules/a", header: map[string]string{"If-Match": "*"}},
		{method: "POST", path: "/v1/keys", body: `{"tenantId":"acme"}`},
		{method: "GET", path: "/v1/audit"},
		{method: "GET", path: "/v1/customers"},
		{method: "POST", path: "/v1/plans", body: goodPlan},
		{method: "POST", path: "/v1/subscriptions", body: `{"customer":"acme","plan":"pro"}`},
		{method: "POST", path: "/v1/plans/pro/moves", body: `{"from":1,"to":2,"all":true}`},
	} {
		got := r.do(t, api)
		got.problem(t)
		if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
			t.Errorf("%s %s answers %d, Retry-After %q", r.method, r.path, got.Code, got.Header().Get("Retry-After"))
		}
	}
}

func TestUnknownResourcesAndMethods(t *testing.T) {
	t.Parallel()
	api := newAPI(t, "")
	got := request{method: "PATCH", path: "/v1/rules", body: "{}"}.do(t, api)
	got.problem(t)
	if allow := got.Header()["Allow"]; got.Code != 405 || strings.Join(allow, ",") != "GET,POST" {
		t.Fatalf("answers %d, Allow %v", got.Code, allow)
	}
	if got := (request{method: "GET", path: "/v2/rules"}).do(t, api); got.Code != 404 {
		t.Fatalf("answers %d", got.Code)
	}
}
