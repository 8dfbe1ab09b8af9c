//go:build integration

package controlplane_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/webhooks"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/webhook"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
	"github.com/sluice-platform/sluice/services/controlplane"
)

// webhookWorld can reach the test's own servers, and keeps what is logged.
func webhookWorld(t *testing.T) (world, *bytes.Buffer) {
	t.Helper()
	key := service.Secret("k1:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))
	sender, err := webhook.New(webhook.Config{
		Keys: []service.Secret{key}, Allow: []string{"127.0.0.0/8"}, AllowHTTP: true, Timeout: 5 * time.Second, GiveUpAfter: time.Hour,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	log := &bytes.Buffer{}
	return newWorldWith(t, controlplane.Deps{Webhooks: sender, Log: slog.New(slog.NewTextHandler(log, nil))}), log
}

// created creates a webhook and returns it with its secret.
func (w world) created(t *testing.T, url string) webhooks.CreatedWebhook {
	t.Helper()
	got := w.must(t, 201, request{method: "POST", path: "/v1/webhooks", body: fmt.Sprintf(`{"url":%q,"description":"test"}`, url)})
	var c webhooks.CreatedWebhook
	if err := json.Unmarshal(got.Body.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	if got.Header().Get("Location") != "/v1/webhooks/"+c.ID || got.Header().Get("ETag") == "" || !strings.HasPrefix(c.Secret, "whsec_") || c.Status != "active" {
		t.Fatalf("created %+v, header %v", c.Webhook, got.Header())
	}
	return c
}

func TestWebhookLifeShowsItsSecretOnce(t *testing.T) {
	t.Parallel()
	w, log := webhookWorld(t)
	c := w.created(t, "https://example.com/hooks?token=x")
	path := "/v1/webhooks/" + c.ID
	got := w.must(t, 200, request{method: "GET", path: path})
	put := w.put(t, 200, path, got.Header().Get("ETag"), got.Body.String()) // what GET returns can be PUT back
	w.put(t, 412, path, got.Header().Get("ETag"), got.Body.String())
	w.must(t, 428, request{method: "PUT", path: path, body: got.Body.String()})
	paused := w.put(t, 200, path, put.Header().Get("ETag"), `{"url":"https://example.com/","enabled":false,"eventTypes":["com.sluice.quota.threshold.reached.v1"],"tenantId":"acme"}`)
	if !strings.Contains(paused.Body.String(), `"status":"paused"`) {
		t.Fatalf("paused: %s", paused.Body)
	}
	list := w.must(t, 200, request{method: "GET", path: "/v1/webhooks"})
	rotated := w.must(t, 200, request{method: "POST", path: path + "/secret"})
	var second webhooks.RotatedSecret
	if err := json.Unmarshal(rotated.Body.Bytes(), &second); err != nil || second.Secret == c.Secret || !strings.HasPrefix(second.Secret, "whsec_") {
		t.Fatalf("rotated %s, %v", rotated.Body, err)
	}
	audit := w.must(t, 200, request{method: "GET", path: "/v1/audit?kind=webhook"})
	var everything strings.Builder
	for _, s := range []string{got.Body.String(), put.Body.String(), paused.Body.String(), list.Body.String(), audit.Body.String(), log.String()} {
		everything.WriteString(s)
	}
	var rows string
	if err := w.db.QueryRow(t.Context(), `SELECT (SELECT string_agg(row_to_json(s)::text, '') FROM webhook_secrets s) || (SELECT string_agg(row_to_json(a)::text, '') FROM audit a)`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{c.Secret, second.Secret} {
		if plain := strings.TrimPrefix(secret, "whsec_"); strings.Contains(everything.String()+rows, plain) {
			t.Error("a secret is shown, logged or stored in the clear")
		}
	}
	if n := w.count(t, `SELECT count(*) FROM audit WHERE kind = 'webhook'`); n != 4 {
		t.Errorf("%d audit rows for 4 changes", n)
	}
	if n := w.count(t, `SELECT count(*) FROM outbox`); n != 0 {
		t.Errorf("%d webhooks left for a topic: none carries them", n)
	}
	w.delete(t, 204, path, "*")
	w.must(t, 404, request{method: "GET", path: path})
	w.must(t, 404, request{method: "POST", path: path + "/test"})
	if n := w.count(t, `SELECT count(*) FROM webhook_secrets`); n != 0 {
		t.Errorf("%d secrets outlived their webhook", n)
	}
}

// receiver is an endpoint that keeps what it is sent.
type receiver struct {
	*httptest.Server
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T, status int) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.header, r.body = req.Header, nil
		r.body, _ = io.ReadAll(req.Body)
		w.WriteHeader(status)
		_, _ = w.Write([]byte("hello from the endpoint"))
	}))
	t.Cleanup(r.Close)
	return r
}

func (w world) test(t *testing.T, id string) (result webhooks.WebhookTest) {
	t.Helper()
	got := w.must(t, 200, request{method: "POST", path: "/v1/webhooks/" + id + "/test"})
	if err := json.Unmarshal(got.Body.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestTestButtonSendsNowAndShowsTheAnswer(t *testing.T) {
	t.Parallel()
	w, _ := webhookWorld(t)
	good, bad := newReceiver(t, 204), newReceiver(t, 500)
	c := w.created(t, good.URL)
	result := w.test(t, c.ID)
	if !result.Delivered || result.Status != 204 || result.Reason != "" {
		t.Fatalf("result %+v", result)
	}
	if err := webhook.Verify(good.header, good.body, service.Secret(c.Secret), time.Now()); err != nil {
		t.Fatal(err)
	}
	var e quotaevents.Event
	if err := json.Unmarshal(good.body, &e); err != nil || e.Type != quotaevents.TypeTest || e.ID != result.EventID || good.header.Get("Content-Type") != "application/cloudevents+json" {
		t.Fatalf("event %s, header %v", good.body, good.header)
	}
	if r := w.test(t, w.created(t, bad.URL).ID); r.Delivered || r.Status != 500 || r.Reason != "answered 500" || r.Response != "hello from the endpoint" {
		t.Fatalf("result %+v", r)
	}
	bad.Close()
	if r := w.test(t, w.created(t, bad.URL).ID); r.Delivered || r.Status != 0 || r.Reason == "" {
		t.Fatalf("result %+v", r)
	}
	if n := w.count(t, `SELECT count(*) FROM webhook_deliveries`); n != 0 {
		t.Errorf("a test left %d deliveries", n)
	}
}

func TestExchangedSecretsSignTogetherAndThenOneAlone(t *testing.T) {
	t.Parallel()
	w, _ := webhookWorld(t)
	r := newReceiver(t, 200)
	c := w.created(t, r.URL)
	rotate := func(keep int) string {
		var s webhooks.RotatedSecret
		got := w.must(t, 200, request{method: "POST", path: fmt.Sprintf("/v1/webhooks/%s/secret?keepHours=%d", c.ID, keep)})
		if err := json.Unmarshal(got.Body.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		return s.Secret
	}
	signs := func(secret string) bool {
		return webhook.Verify(r.header, r.body, service.Secret(secret), time.Now()) == nil
	}
	second := rotate(1)
	w.test(t, c.ID)
	if !signs(c.Secret) || !signs(second) {
		t.Fatal("not both secrets sign")
	}
	third := rotate(1)
	w.test(t, c.ID)
	if signs(c.Secret) || !signs(second) || !signs(third) {
		t.Fatal("of three secrets not just the last two sign")
	}
	fourth := rotate(0)
	w.test(t, c.ID)
	if signs(second) || signs(third) || !signs(fourth) {
		t.Fatal("a secret signs beyond its end")
	}
}

func TestDeliveriesAreListedAndRedelivered(t *testing.T) {
	t.Parallel()
	w, _ := webhookWorld(t)
	c := w.created(t, "https://example.com/")
	path := "/v1/webhooks/" + c.ID
	w.countsFrom(t, "webhook_deliveries", 1<<33)
	if _, err := w.db.Exec(t.Context(), `INSERT INTO webhook_deliveries (webhook, event_id, event_type, event_time, body, state, attempts, due_at, give_up_at, status, reason, created_at)
		SELECT $1, 'e-' || n, 'x', now(), '{}', CASE WHEN n % 2 = 0 THEN 'dead' ELSE 'delivered' END, 7, now(), now(), 500, 'answered 500', now() FROM generate_series(1, 9) n`, c.ID); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for next := path + "/deliveries?limit=2&state=dead"; next != ""; {
		var page api.Page[webhooks.WebhookDelivery]
		if err := json.Unmarshal(w.must(t, 200, request{method: "GET", path: next}).Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Items {
			seen = append(seen, d.EventID)
		}
		next = ""
		if page.Next != "" {
			next = path + "/deliveries?limit=2&state=dead&cursor=" + page.Next
		}
	}
	if strings.Join(seen, " ") != "e-8 e-6 e-4 e-2" {
		t.Fatalf("dead letters %q", seen)
	}
	first := w.count(t, `SELECT id FROM webhook_deliveries WHERE event_id = 'e-2'`)
	one := w.must(t, 200, request{method: "POST", path: fmt.Sprintf("%s/deliveries/%d/redeliver", path, first)})
	if !strings.Contains(one.Body.String(), `"state":"pending"`) || !strings.Contains(one.Body.String(), `"attempts":0`) {
		t.Fatalf("redelivered %s", one.Body)
	}
	if all := w.must(t, 200, request{method: "POST", path: path + "/redeliver"}); !strings.Contains(all.Body.String(), `"count":3`) {
		t.Fatalf("redelivered %s", all.Body)
	}
	if n := w.count(t, `SELECT count(*) FROM webhook_deliveries WHERE state = 'pending' AND due_at <= now() AND give_up_at > now() + interval '50 minutes'`); n != 4 {
		t.Fatalf("%d are under way again", n)
	}
	w.must(t, 404, request{method: "POST", path: path + "/deliveries/999999/redeliver"})
	w.must(t, 404, request{method: "GET", path: "/v1/webhooks/wh_none/deliveries"})
	w.must(t, 400, request{method: "GET", path: path + "/deliveries?cursor=x"})
	// One that answered 410 is off until it is written again.
	if _, err := w.db.Exec(t.Context(), `INSERT INTO webhook_gone SELECT key, version, now() FROM webhooks`); err != nil {
		t.Fatal(err)
	}
	got := w.must(t, 200, request{method: "GET", path: path})
	if !strings.Contains(got.Body.String(), `"status":"gone"`) {
		t.Fatalf("shows %s", got.Body)
	}
	w.must(t, 409, request{method: "POST", path: path + "/redeliver"})
	if again := w.put(t, 200, path, got.Header().Get("ETag"), got.Body.String()); !strings.Contains(again.Body.String(), `"status":"active"`) {
		t.Fatalf("shows %s", again.Body)
	}
	w.must(t, 200, request{method: "POST", path: path + "/redeliver"})
	w.delete(t, 204, path, "*")
	if n := w.count(t, `SELECT count(*) FROM webhook_deliveries`) + w.count(t, `SELECT count(*) FROM webhook_gone`); n != 0 {
		t.Fatalf("%d rows outlived their webhook", n)
	}
}

// A webhook of an older control plane may have a type that no event has.
func TestTypesThatAreStoredCanBePutBack(t *testing.T) {
	t.Parallel()
	w, _ := webhookWorld(t)
	path := w.must(t, 201, request{method: "POST", path: "/v1/webhooks", body: `{"url":"https://example.com"}`}).Header().Get("Location")
	if _, err := w.db.Exec(t.Context(), `UPDATE webhooks SET document = document || '{"eventTypes":["old"]}'`); err != nil {
		t.Fatal(err)
	}
	got := w.must(t, 200, request{method: "GET", path: path})
	w.put(t, 200, path, "*", got.Body.String())
	w.put(t, 400, path, "*", strings.Replace(got.Body.String(), `["old"]`, `["old","new"]`, 1))
}

func TestBadWebhooksAreRefusedByName(t *testing.T) {
	t.Parallel()
	w, _ := webhookWorld(t)
	for body, field := range map[string]string{
		`{}`:                                     "url",
		`{"url":"ftp://example.com"}`:            "url",
		`{"url":"https://169.254.169.254/x"}`:    "url",
		`{"url":"https://u:p@example.com"}`:      "url",
		`{"url":"https://example.com","id":"x"}`: "id",
		`{"url":"https://example.com","urls":1}`: "urls",
		`{"url":"https://example.com/` + strings.Repeat("x", 2048) + `"}`:                              "url",
		`{"url":"https://example.com","description":"a\u0000"}`:                                        "description",
		`{"url":"https://example.com","eventTypes":["a",""]}`:                                          "eventTypes[1]",
		`{"url":"https://example.com","eventTypes":["com.sluice.quota.threshold.reached.v1","bogus"]}`: "eventTypes[1]",
		`{"url":"https://example.com","eventTypes":[` + strings.Repeat(`"a",`, 32) + `"a"]}`:           "eventTypes",
		`{"url":"https://example.com","tenantId":"` + strings.Repeat("x", 129) + `"}`:                  "tenantId",
		`{"url":"https://example.com","enabled":"yes"}`:                                                "enabled",
	} {
		got := w.must(t, 400, request{method: "POST", path: "/v1/webhooks", body: body})
		if !strings.Contains(got.Body.String(), fmt.Sprintf(`"field":%q`, field)) {
			t.Errorf("%s: %s", body, got.Body)
		}
	}
	bogus := request{method: "POST", path: "/v1/webhooks", body: `{"url":"https://example.com","eventTypes":["bogus"]}`}
	if p := w.must(t, 400, bogus).problem(t); !strings.HasSuffix(p.Errors[0].Message, "one of com.sluice.quota.threshold.reached.v1") {
		t.Errorf("a type that no event has: %+v", p.Errors)
	}
	if n := w.count(t, `SELECT count(*) FROM webhooks`); n != 0 {
		t.Fatalf("%d were written", n)
	}
	unconfigured := newWorld(t)
	got := unconfigured.must(t, 409, request{method: "POST", path: "/v1/webhooks", body: `{"url":"https://example.com"}`})
	if !strings.Contains(got.Body.String(), "webhooks.keys") {
		t.Fatalf("without keys: %s", got.Body)
	}
}
