//go:build integration

package webhooks

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/webhook"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
)

func TestEventFromKafkaArrivesSignedAndOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client := b.onKafka()
	e := newEndpoint(t, always(204))
	secret := b.webhook("wh_1", e.URL, "")
	servertest.Run(t, "webhooks", b.room().Run)
	var records []*kgo.Record
	for _, id := range []string{"e-1", "e-2", "e-1"} { // the relay may carry one twice
		r := record(id, "acme")
		records = append(records, &kgo.Record{Topic: b.stream.Topic(quotaevents.Topic), Key: r.Key, Value: r.Value, Headers: r.Headers})
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	b.eventually("both events to be delivered", func() bool { return b.state("e-1") == "delivered 1" && b.state("e-2") == "delivered 1" })
	got := e.all()
	if len(got) != 2 {
		t.Fatalf("%d requests", len(got))
	}
	for _, r := range got {
		if err := webhook.Verify(r.header, r.body, secret, b.clock.Now()); err != nil {
			t.Error(err)
		}
		var event quotaevents.Event
		if err := json.Unmarshal(r.body, &event); err != nil {
			t.Fatal(err)
		}
		if event.ID != r.header.Get("webhook-id") || event.Type != quotaevents.TypeThresholdReached || !event.Time.Equal(noon) ||
			r.header.Get("Content-Type") != "application/cloudevents+json" || !strings.Contains(string(event.Data), `"tenantId":"acme"`) {
			t.Errorf("header %v, body %s", r.header, r.body)
		}
	}
	b.eventually("the offset to be committed", func() bool {
		return servertest.Uncommitted(t, client, b.stream.Topic(quotaevents.Topic), b.stream.Topic(DefaultConfig().Group)) == 0
	})
}

func TestFanOutGoesToThoseThatWantIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.room()
	b.webhook("wh_all", "https://example.com", "")
	b.webhook("wh_acme", "https://example.com", `"tenantId":"acme"`)
	b.webhook("wh_globex", "https://example.com", `"tenantId":"globex"`)
	b.webhook("wh_type", "https://example.com", `"eventTypes":["x","`+quotaevents.TypeThresholdReached+`"]`)
	b.webhook("wh_other", "https://example.com", `"eventTypes":["x"]`)
	b.webhook("wh_paused", "https://example.com", `"enabled":false`)
	b.webhook("wh_gone", "https://example.com", "")
	b.webhook("wh_reopened", "https://example.com", "")
	b.webhook("wh_deleted", "https://example.com", "")
	b.exec(`UPDATE webhooks SET document = NULL WHERE key = 'wh_deleted'`)
	b.exec(`INSERT INTO webhook_gone SELECT key, version, now() FROM webhooks WHERE key IN ('wh_gone', 'wh_reopened')`)
	b.exec(`UPDATE webhooks SET version = 2 WHERE key = 'wh_reopened'`)
	broken := record("e-2", "acme")
	broken.Headers = broken.Headers[:0]
	b.fanOut(s, record("e-1", "acme"), broken, record("e-1", "acme"))
	b.fanOut(s, record("e-1", "acme"))
	if got := b.text(`SELECT string_agg(webhook, ' ' ORDER BY webhook) FROM webhook_deliveries`); got != "wh_acme wh_all wh_reopened wh_type" {
		t.Fatalf("deliveries to %s", got)
	}
	if testutil.ToFloat64(s.metrics.bad) != 1 {
		t.Fatal("the broken record was not counted")
	}
}

func TestFailedDeliveryIsTriedAgainWithBackoff(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := newEndpoint(t, func(_ *http.Request, n int) int { return []int{500, 302, 429, 200}[min(n, 4)-1] })
	secret := b.webhook("wh_1", e.URL, "")
	s := b.room()
	b.fanOut(s, record("e-1", "acme"))
	servertest.Run(t, "dispatcher", runDispatch(s))
	for n := 1; n <= 3; n++ {
		b.eventually("an attempt to be marked", func() bool {
			return b.text(`SELECT attempts FROM webhook_deliveries WHERE reason <> '' AND attempted_at = $1`, b.clock.Now()) == string(rune('0'+n))
		})
		wait := b.text(`SELECT extract(epoch FROM due_at - $1) > 0 AND due_at - $1 <= least(interval '5s' * 2 ^ (attempts - 1), interval '1h') FROM webhook_deliveries`, b.clock.Now())
		if wait != "true" {
			t.Fatalf("due at %s", b.text(`SELECT due_at - $1 FROM webhook_deliveries`, b.clock.Now()))
		}
		b.clock.forward(time.Minute)
	}
	b.eventually("it to be delivered", func() bool { return b.state("e-1") == "delivered 4" })
	if ids := e.ids(); !slices.Equal(ids, []string{"e-1", "e-1", "e-1", "e-1"}) {
		t.Fatalf("ids %q", ids)
	}
	stamps := map[string]bool{}
	for _, r := range e.all() {
		stamps[r.header.Get("webhook-timestamp")] = true
	}
	if err := webhook.Verify(e.all()[3].header, e.all()[3].body, secret, b.clock.Now()); err != nil || len(stamps) != 4 {
		t.Fatalf("%v; %d timestamps: each attempt is signed anew", err, len(stamps))
	}
}

func TestAfterADayADeliveryIsADeadLetterUntilItIsRedelivered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answer := make(chan int, 1)
	answer <- 503
	e := newEndpoint(t, func(*http.Request, int) int { status := <-answer; answer <- status; return status })
	b.webhook("wh_1", e.URL, "")
	s := b.room()
	b.fanOut(s, record("e-1", "acme"))
	servertest.Run(t, "dispatcher", runDispatch(s))
	began, hours := b.clock.Now(), 0
	for ; !strings.HasPrefix(b.state("e-1"), "dead"); hours++ {
		before := len(e.all())
		b.clock.forward(time.Hour)
		b.eventually("an attempt, marked", func() bool {
			return len(e.all()) > before && b.text(`SELECT attempted_at = $1 FROM webhook_deliveries`, b.clock.Now()) == "true"
		})
		if hours > 26 {
			t.Fatal("it is tried for more than a day")
		}
	}
	if tried := b.clock.Now().Sub(began); tried < 23*time.Hour || tried > 25*time.Hour {
		t.Fatalf("it was given up after %v", tried)
	}
	if b.text(`SELECT status || reason FROM webhook_deliveries`) != "503answered 503" || testutil.ToFloat64(s.metrics.attempts.WithLabelValues(outcomeDead)) != 1 {
		t.Fatal("what the last attempt came to is not kept")
	}
	if err := s.sweep(t.Context()); err != nil || testutil.ToFloat64(s.metrics.dead) != 1 || testutil.ToFloat64(s.metrics.pending) != 0 {
		t.Fatalf("%v; dead letters %v", err, testutil.ToFloat64(s.metrics.dead))
	}
	<-answer
	answer <- 200
	// As the control plane does.
	b.exec(`UPDATE webhook_deliveries SET state = 'pending', attempts = 0, due_at = $1::timestamptz, give_up_at = $1::timestamptz + interval '1 day'`, b.clock.Now())
	b.eventually("it to be delivered", func() bool { return b.state("e-1") == "delivered 1" })
}

// Who dies between sending and marking has it sent again, by the same id.
func TestAKillBetweenDeliveryAndMarkingDeliversAgainByTheSameID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := newEndpoint(t, always(200))
	b.webhook("wh_1", e.URL, "")
	s := b.room()
	b.fanOut(s, record("e-1", "acme"))
	claimed, err := s.claim(t.Context())
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	if a := s.send(t.Context(), claimed[0]); !a.Delivered() {
		t.Fatal(a.Reason())
	}
	// Killed here. Another process has nothing to do until the lease is over.
	next := b.room()
	if again, err := next.claim(t.Context()); err != nil || len(again) != 0 {
		t.Fatalf("claimed %v, %v, during the lease", again, err)
	}
	b.clock.forward(b.config().Timeout + leaseSlack)
	servertest.Run(t, "dispatcher", runDispatch(next))
	b.eventually("it to be delivered", func() bool { return b.state("e-1") == "delivered 2" })
	if ids := e.ids(); !slices.Equal(ids, []string{"e-1", "e-1"}) {
		t.Fatalf("ids %q", ids)
	}
	// The first was only slow: its failure counts no more, its success would.
	if err := s.mark(t.Context(), claimed[0], webhook.Answer{Status: 500}); err != nil || b.state("e-1") != "delivered 2" {
		t.Fatalf("%v; a failure that came late changed it to %s", err, b.state("e-1"))
	}
}

func TestGoneEndsAWebhookUntilItIsWrittenAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := newEndpoint(t, func(_ *http.Request, n int) int { return map[bool]int{true: 410, false: 200}[n == 1] })
	b.webhook("wh_1", e.URL, "")
	s := b.room()
	b.fanOut(s, record("e-1", "acme"))
	servertest.Run(t, "dispatcher", runDispatch(s))
	b.eventually("it to be dead", func() bool { return b.state("e-1") == "dead 1" })
	b.fanOut(s, record("e-2", "acme"))
	if b.state("e-2") != "" {
		t.Fatal("an event is kept for a webhook that is gone")
	}
	b.exec(`UPDATE webhooks SET version = 2`)
	b.fanOut(s, record("e-3", "acme"))
	b.eventually("it to be delivered", func() bool { return b.state("e-3") == "delivered 1" })
}

func TestSlowEndpointHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	release := make(chan struct{})
	slow := newEndpoint(t, func(*http.Request, int) int { <-release; return 200 })
	t.Cleanup(func() { close(release) })
	quick := newEndpoint(t, always(200))
	b.webhook("wh_a_slow", slow.URL, "")
	b.webhook("wh_quick", quick.URL, "")
	s := b.room()
	servertest.Run(t, "dispatcher", runDispatch(s))
	const many = 40
	for n := range many {
		b.fanOut(s, record(eventID(n), "acme"))
	}
	b.eventually("the quick one to have all", func() bool { return len(quick.all()) == many })
	if n := len(slow.all()); n > s.cfg.PerWebhook {
		t.Fatalf("%d are under way to the slow one, more than its %d", n, s.cfg.PerWebhook)
	}
}

func TestSweepGivesUpWhatNobodyCanDeliverAndDropsTheOld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.room()
	b.webhook("wh_1", "https://example.com", "")
	b.webhook("wh_2", "https://example.com", "")
	b.fanOut(s, record("e-1", "acme"))
	b.exec(`UPDATE webhooks SET document = document || '{"enabled": false}' WHERE key = 'wh_2'`)
	b.clock.forward(25 * time.Hour)
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.state("e-1") != "pending 0, dead 0" { // the first still gets an attempt
		t.Fatal(b.state("e-1"))
	}
	if n := testutil.ToFloat64(s.metrics.oldest); n != (25 * time.Hour).Seconds() {
		t.Fatalf("the oldest is %v s old", n)
	}
	b.clock.forward(b.config().Keep)
	if err := s.sweep(t.Context()); err != nil || b.state("e-1") != "pending 0" {
		t.Fatalf("%v; %s", err, b.state("e-1"))
	}
}

func TestStopLetsWhatIsUnderWayEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	e := newEndpoint(t, func(*http.Request, int) int { close(arrived); <-release; return 200 })
	b.webhook("wh_1", e.URL, "")
	s := b.room()
	b.fanOut(s, record("e-1", "acme"))
	stop := servertest.Run(t, "dispatcher", runDispatch(s))
	<-arrived
	go func() { close(release) }()
	stop()
	if b.state("e-1") != "delivered 1" {
		t.Fatal(b.state("e-1"))
	}
}

func TestSecretThatCannotBeOpenedSendsNothingUnsigned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := newEndpoint(t, always(200))
	b.webhook("wh_1", e.URL, "")
	b.exec(`UPDATE webhook_secrets SET sealed = 'k9' || substr(sealed, 3)`)
	s := b.room()
	b.fanOut(s, record("e-1", "acme"))
	servertest.Run(t, "dispatcher", runDispatch(s))
	b.eventually("the reason", func() bool {
		return strings.Contains(b.text(`SELECT reason FROM webhook_deliveries`), "cannot be opened")
	})
	if len(e.all()) != 0 {
		t.Fatal("a request was sent without a signature")
	}
}
