package controlplane_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRepeatedHeadersAreRefused: which of two values holds would be a matter
// of who reads them.
func TestRepeatedHeadersAreRefused(t *testing.T) {
	t.Parallel()
	api := newAPI(t, "")
	for name, values := range map[string][]string{
		"Authorization":    {"Bearer " + adminToken, "Bearer " + readOnlyToken},
		"If-Match":         {`"1"`, "*"},
		"If-None-Match":    {"*", "*"},
		"Content-Type":     {"application/json", "text/plain"},
		"Content-Encoding": {"identity", "gzip"},
		"Idempotency-Key":  {"a", "b"},
	} {
		req := httptest.NewRequest(http.MethodPut, "http://sluice.test/v1/rules/a", strings.NewReader(goodRule))
		req.Header.Set("Authorization", "Bearer "+adminToken)
		req.Header[name] = values
		rec := httptest.NewRecorder()
		api.ServeHTTP(rec, req)
		p := (&answer{rec}).problem(t)
		if rec.Code != http.StatusBadRequest || len(p.Errors) != 1 || p.Errors[0].Location != "header" || p.Errors[0].Field != name {
			t.Errorf("two %s answer %d %s", name, rec.Code, rec.Body)
		}
	}
}

// TestAcceptIsNotNegotiated: one sort of answer is spoken, and what a client
// accepts cannot turn a change that was committed into a 500.
func TestAcceptIsNotNegotiated(t *testing.T) {
	t.Parallel()
	api := newAPI(t, "")
	for _, accept := range []string{"text/html;, */*", ";", ",;,", "text/html", "application/cbor", "a;q=,b", "\x80;"} {
		got := request{method: "GET", path: "/v1/usage", header: map[string]string{"Accept": accept}}.do(t, api)
		if got.Code != http.StatusOK || got.Header().Get("Content-Type") != "application/json" {
			t.Errorf("Accept %q is answered %d %s %s", accept, got.Code, got.Header().Get("Content-Type"), got.Body)
		}
	}
}

func TestRootLeadsToTheDocs(t *testing.T) {
	t.Parallel()
	api := newAPI(t, "")
	got := request{method: "GET", path: "/", token: "-"}.do(t, api)
	if got.Code != http.StatusFound || got.Header().Get("Location") != "/docs" {
		t.Errorf("GET / answers %d, Location %q", got.Code, got.Header().Get("Location"))
	}
	if got := (request{method: "GET", path: "/v2", token: "-"}).do(t, api); got.Code != http.StatusUnauthorized {
		t.Errorf("GET /v2 without a token answers %d", got.Code)
	}
}
