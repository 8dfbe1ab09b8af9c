//go:build integration

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// invoiceOf says the state and total of a customer's invoice of the month that
// begins at a time, and of its first correction: "draft 10.00 ".
func (s *stack) invoiceOf(customer string, month time.Time) (found string) {
	s.t.Helper()
	s.database(func(ctx context.Context, db *pgx.Conn) error {
		return db.QueryRow(ctx, `SELECT coalesce((SELECT status || ' ' || (document->>'total') || ' ' ||
			coalesce(jsonb_path_query_first(document, '$.lines[*] ? (@.kind == "correction").amount') #>> '{}', '')
			FROM invoices WHERE customer = $1 AND starts_at = $2), 'none')`, customer, month).Scan(&found)
	})
	return found
}

func (s *stack) awaitInvoice(customer string, month time.Time, want string) {
	s.t.Helper()
	got := ""
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%s has %q, want %q", customer, got, want)
		}
	}()
	servertest.Eventually(s.t, 30*time.Second, "the invoice", func() bool {
		got = s.invoiceOf(customer, month)
		return got == want
	})
}

// Events of last month that come hours after its end, twice in a batch, again
// later, and with the id that another tenant's event has: from Kafka through the
// checkpoint to the draft while it is one, and to a correction on the next
// invoice once it is final.
func TestLateUseReachesItsInvoice(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	s.process("rest", "controlplane,relay,keeper", nil).start().awaitReady()
	billing := func(grace string) *process {
		return s.process("billing", "billing", map[string]any{"billing": map[string]any{"every": "50ms", "grace": grace}}).start().awaitReady()
	}
	job := billing("2160h")
	s.soldPlan()
	now := time.Now().UTC()
	running := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	last := running.AddDate(0, -1, 0)
	kafka, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	tenants := []string{"acme", "globex"}
	for _, tenant := range tenants {
		s.subscribed(tenant, last)
	}
	// used tells that all have used so much of last month, in events of one id.
	used := func(consumed int64) {
		t.Helper()
		limit := int64(1000)
		var records []*kgo.Record
		for range 2 {
			for _, tenant := range tenants {
				value, err := json.Marshal(usage.Event{ID: fmt.Sprint("event-", consumed), TS: running.Add(-time.Second), TenantID: tenant, Charges: []usage.Charge{{
					Counter: fmt.Sprintf("{t:%s}:t::calls:quota:month:%s", tenant, last.Format("200601")),
					Metric:  "calls", Amount: 1, Consumed: consumed, Limit: &limit,
				}}})
				if err != nil {
					t.Fatal(err)
				}
				records = append(records, &kgo.Record{Topic: s.topicPrefix + usage.Topic, Key: []byte(tenant), Value: value})
			}
		}
		if err := kafka.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	await := func(month time.Time, want string) {
		t.Helper()
		for _, tenant := range tenants {
			s.awaitInvoice(tenant, month, want)
		}
	}
	await(last, "draft 10.00 ")
	used(300)
	await(last, "draft 13.00 ")
	used(200) // known already
	used(400)
	await(last, "draft 14.00 ")
	job.stop()
	billing("1m")
	await(last, "final 14.00 ")
	used(400)
	used(450)
	await(running, "draft 10.50 0.50")
	await(last, "final 14.00 ")
}
