//go:build integration

package controlplane_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	ctlrules "github.com/sluice-platform/sluice/services/controlplane/internal/rules"

	"github.com/sluice-platform/sluice/schemas/events/keys"
)

func createKey(t *testing.T, w world, body string) (ctlrules.CreatedKey, string) {
	t.Helper()
	got := w.must(t, 201, request{method: "POST", path: "/v1/keys", body: body})
	var key ctlrules.CreatedKey
	if err := json.Unmarshal(got.Body.Bytes(), &key); err != nil {
		t.Fatal(err)
	}
	if got.Header().Get("Location") != "/v1/keys/"+key.ID {
		t.Errorf("Location %q", got.Header().Get("Location"))
	}
	return key, got.Header().Get("ETag")
}

func TestKeyIsShownOnceAndStoredAsHash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, etag := createKey(t, w, `{"name":"ci","tenantId":"acme","userId":"u/1","expiresAt":"2100-01-01T00:00:00Z"}`)
	if !regexp.MustCompile(`^slk_[A-Za-z0-9_-]{43}$`).MatchString(key.Key) {
		t.Errorf("the key is %q", key.Key)
	}
	path := "/v1/keys/" + key.ID
	got := w.must(t, 200, request{method: "GET", path: path})
	list := w.must(t, 200, request{method: "GET", path: "/v1/keys?tenantId=acme"})
	audit := w.must(t, 200, request{method: "GET", path: "/v1/audit"})
	hash := hashOf(key.Key)
	for name, body := range map[string]string{"get": got.Body.String(), "list": list.Body.String(), "audit": audit.Body.String()} {
		if strings.Contains(body, key.Key) || strings.Contains(body, hash) || strings.Contains(body, "sha256") || !strings.Contains(body, key.ID) {
			t.Errorf("%s shows %s", name, body)
		}
	}
	if n := w.count(t, `SELECT count(*) FROM api_keys WHERE document->>'sha256' = $1`, hash); n != 1 {
		t.Errorf("%d keys are stored by the hash", n)
	}
	for _, table := range []string{"api_keys", "outbox", "audit"} {
		if n := w.count(t, `SELECT count(*) FROM `+table+` AS x WHERE x::text LIKE '%' || $1 || '%'`, key.Key); n != 0 {
			t.Errorf("%s holds the key itself", table)
		}
	}
	w.put(t, 200, path, etag, got.Body.String()) // what GET returns can be PUT back
	if n := w.count(t, `SELECT count(*) FROM api_keys WHERE document->>'sha256' = $1`, hash); n != 1 {
		t.Error("PUT lost the hash")
	}
	w.holdMirror(t, "keys_v1", keys.Topic)
}

func TestKeyStatusEndsInRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, etag := createKey(t, w, `{"tenantId":"acme","expiresAt":"2100-01-01T00:00:00Z"}`)
	path := "/v1/keys/" + key.ID
	patch := func(status int, etag, body string) *answer {
		return w.must(t, status, request{method: "PATCH", path: path, body: body, header: map[string]string{
			"If-Match": etag, "Content-Type": "application/merge-patch+json"}})
	}
	blocked := patch(200, etag, `{"status":"blocked"}`)
	patch(412, etag, `{"status":"active"}`)
	if !strings.Contains(blocked.Body.String(), `"expiresAt":"2100`) {
		t.Errorf("a patch of the status gives %s", blocked.Body)
	}
	if got := patch(200, "*", `{"status":"active","expiresAt":null,"name":"n"}`); strings.Contains(got.Body.String(), "expiresAt") {
		t.Errorf("null leaves the end: %s", got.Body)
	}
	w.put(t, 400, path, "*", `{"tenantId":"other","status":"active"}`)
	w.put(t, 400, path, "*", `{"tenantId":"acme"}`)
	patch(200, "*", `{"status":"revoked"}`)
	patch(409, "*", `{"status":"active"}`)
	w.put(t, 409, path, "*", `{"tenantId":"acme","status":"blocked"}`)
	patch(200, "*", `{"name":"kept for the audit"}`)
	w.delete(t, 204, path, "*")
	w.must(t, 404, request{method: "GET", path: path})
	w.put(t, 404, path, "*", `{"tenantId":"acme","status":"active"}`)
	w.holdMirror(t, "keys_v1", keys.Topic)
}
