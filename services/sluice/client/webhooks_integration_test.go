//go:build integration

package client

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWebhooksFromCreationToDeletion(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("short and stout"))
	}))
	defer endpoint.Close()
	out, errs, err := s.run(t, "", "webhooks", "create", endpoint.URL, "--tenant", "acme", "--type", "com.sluice.quota.threshold.reached.v1", "--description", "mine")
	var created struct{ ID, Secret, TenantID string }
	if err != nil || json.Unmarshal([]byte(out), &created) != nil || !strings.HasPrefix(created.Secret, "whsec_") || created.TenantID != "acme" || !strings.Contains(errs, keepSecret) {
		t.Fatalf("created %s, %s, %v", out, errs, err)
	}
	holds(t, s.must(t, "", "webhooks", "list"), created.ID, "active", "acme", "mine", endpoint.URL)
	holds(t, s.must(t, "", "webhooks", "test", created.ID), `"status": 418`, "short and stout", `"delivered": false`)
	if second := s.must(t, "", "webhooks", "rotate", created.ID, "--keep-hours", "1"); strings.Contains(second, created.Secret) || !strings.Contains(second, "whsec_") {
		t.Fatalf("rotated %s", second)
	}
	holds(t, s.must(t, "", "webhooks", "deliveries", created.ID, "--state", "dead"), "REASON")
	holds(t, s.must(t, "", "webhooks", "redeliver", created.ID), `"count": 0`)
	s.refused(t, "there is nothing by this id", "", "webhooks", "redeliver", created.ID, "--delivery", "7")
	s.refused(t, "must be https", "", "webhooks", "create", "ftp://example.com")
	holds(t, s.must(t, "", "webhooks", "delete", created.ID), "deleted webhook "+created.ID)
	s.refused(t, "there is nothing by this id", "", "webhooks", "test", created.ID)
}
