//go:build integration

package controlplane_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/overrides"
)

var goodOverride = `{"subject":{"kind":"tenant","value":"acme"},"metric":"hellos","window":"60s","limit":300,"validUntil":"` + nextYear + `"}`

var nextYear = time.Now().UTC().AddDate(1, 0, 0).Format(time.RFC3339)

func TestOverrideLifeIsMirroredByteForByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	created := w.must(t, 201, request{method: "POST", path: "/v1/overrides", body: goodOverride})
	at := "/v1/overrides/tenant:acme:hellos:1m"
	if created.Header().Get("Location") != at {
		t.Fatalf("Location %q", created.Header().Get("Location"))
	}
	// The same subject, metric and horizon in another spelling are the same override.
	w.must(t, 409, request{method: "POST", path: "/v1/overrides", body: goodOverride})
	got := w.must(t, 200, request{method: "GET", path: at})
	var shown overrides.Override
	if err := json.Unmarshal(got.Body.Bytes(), &shown); err != nil || shown.Window != "1m" || *shown.Limit != 300 || shown.Version == 0 {
		t.Fatalf("shows %s, %v", got.Body, err)
	}
	put := w.put(t, 200, at, got.Header().Get("ETag"), got.Body.String()) // what GET returns can be PUT back
	w.put(t, 412, at, got.Header().Get("ETag"), goodOverride)
	w.must(t, 428, request{method: "DELETE", path: at})
	w.delete(t, 204, at, put.Header().Get("ETag"))
	w.must(t, 404, request{method: "GET", path: at})
	if p := w.put(t, 404, at, "*", goodOverride).problem(t); !strings.Contains(p.Detail, "If-None-Match: *") {
		t.Errorf("does not say how to create: %s", p.Detail)
	}
	w.must(t, 201, request{method: "PUT", path: at, body: goodOverride, header: map[string]string{"If-None-Match": "*"}})
	w.holdMirror(t, "overrides_v1", overrides.Topic)
	if n := w.count(t, `SELECT count(*) FROM audit WHERE kind = 'override' AND actor = 'alice'`); n != 4 {
		t.Errorf("the audit log holds %d rows for 4 changes", n)
	}
}

func TestOverridesAreListedByTenantAndMetric(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, body := range []string{
		`{"subject":{"kind":"tenant","value":"acme"},"metric":"m","limit":1}`,
		`{"subject":{"kind":"user","value":"acme/u 1:x"},"metric":"n","period":"month","unlimited":true}`,
		`{"subject":{"kind":"endpoint","value":"pay GET /pay/{id}"},"metric":"m","limit":0}`,
	} {
		created := w.must(t, 201, request{method: "POST", path: "/v1/overrides", body: body})
		w.must(t, 200, request{method: "GET", path: created.Header().Get("Location")})
	}
	tenant, user, endpoint := "tenant:acme:m", "user:acme/u%201%3Ax:n:month", "endpoint:pay%20GET%20/pay/%7Bid%7D:m"
	for query, want := range map[string][]string{
		"": {endpoint, tenant, user}, "tenant=acme": {tenant, user}, "metric=m": {endpoint, tenant}, "tenant=acme&metric=m": {tenant}, "tenant=x": nil,
	} {
		if got := listIDs(t, w, "/v1/overrides?"+query); !slices.Equal(got, want) {
			t.Errorf("%q lists %q, want %q", query, got, want)
		}
	}
	w.delete(t, 204, "/v1/overrides/"+url.PathEscape(user), "*")
	w.holdMirror(t, "overrides_v1", overrides.Topic)
}
