//go:build integration

package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/webhook"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// inbox is a customer's endpoint: it keeps what is signed, by webhook-id.
type inbox struct {
	*httptest.Server
	mu     sync.Mutex
	secret service.Secret
	events map[string]string // id → threshold
	forged int
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	in := &inbox{events: map[string]string{}}
	in.Server = httptest.NewServer(in)
	t.Cleanup(in.Close)
	return in
}

func (in *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	in.mu.Lock()
	defer in.mu.Unlock()
	var e quotaevents.Event
	var data quotaevents.Reached
	if webhook.Verify(r.Header, body, in.secret, time.Now()) != nil || json.Unmarshal(body, &e) != nil || json.Unmarshal(e.Data, &data) != nil {
		in.forged++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	in.events[r.Header.Get(webhook.HeaderID)] = fmt.Sprintf("%s %d%% of %d", data.TenantID, data.Threshold.Percent, *data.Limit)
	w.WriteHeader(http.StatusNoContent)
}

func (in *inbox) all() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Sorted(maps.Values(in.events))
}

// From requests through the gate to a signed request at the customer's
// endpoint, though whoever judges and delivers is away in between.
func TestThresholdsArriveAtAWebhook(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	hooks := map[string]any{"webhooks": map[string]any{
		"keys":  []string{"k1:" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))},
		"allow": []string{"127.0.0.0/8"}, "allowHttp": true, "group": s.topicPrefix + "webhooks",
	}}
	s.process("rest", "controlplane,relay", hooks).start().awaitReady()
	settle := s.process("settle", "keeper,webhooks", hooks).start()
	s.service()
	g := s.gateway("gw-1")
	g.start()
	in := newInbox(t)
	created := decode[struct{ ID, Secret string }](t, s.mustREST("POST", "/v1/webhooks", nil, map[string]any{"url": in.URL, "tenantId": "acme"}, http.StatusCreated).body)
	in.secret = service.Secret(created.Secret)
	rule := quota("reports", "/svc/report", 10)
	rule.Thresholds = &rules.Thresholds{Percent: []int64{50, 100}}
	s.mustREST("POST", "/v1/rules", nil, rule, http.StatusCreated)
	g.awaitReady()
	s.awaitEqualAll()
	settle.awaitReady()

	for range 6 {
		g.hit("/svc/report", as("acme"))
		g.hit("/svc/report", as("globex"))
	}
	settle.stop()
	for range 6 {
		g.hit("/svc/report", as("acme"))
	}
	settle.start()
	want := []string{"acme 100% of 10", "acme 50% of 10"}
	servertest.Eventually(t, 60*time.Second, "both thresholds to arrive", func() bool { return slices.Equal(in.all(), want) })
	if in.forged > 0 {
		t.Errorf("%d requests were not signed", in.forged)
	}
}
