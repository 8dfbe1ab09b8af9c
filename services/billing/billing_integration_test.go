//go:build integration

package billing

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-platform/sluice/schemas/sales"
)

func (s *stand) want(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, brief(s.invoices(t))); diff != "" {
		t.Fatalf("at %s (-want +got):\n%s", s.now, diff)
	}
}

func acme(t *testing.T, now string) *stand {
	t.Helper()
	s := newStand(t, now)
	s.customer(t, sales.Customer{ID: "acme", Name: "Acme"})
	s.plan(t, pro(1))
	s.subscribe(t, subscribed(1, "2026-07-10T08:00:00Z"))
	return s
}

func TestADraftFollowsUseAndBecomesFinal(t *testing.T) {
	t.Parallel()
	s := acme(t, "2026-07-10T09:00:00Z")
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 draft  10.00")
	id := s.invoices(t)[0].ID

	s.used(t, "acme", "calls", "month:202607", 350, 50)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 draft  12.00")

	// Late, but within the days of grace.
	s.at(t, "2026-08-03T23:59:59Z")
	s.used(t, "acme", "calls", "month:202607", 450, 50)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 draft  13.00", "acme 0801T00..0901T00 draft  10.00")

	s.at(t, "2026-08-04T00:00:00Z")
	s.pass(t)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 13.00", "acme 0801T00..0901T00 draft  10.00")
	if got := s.invoices(t)[0]; got.ID != id || got.FinalizedAt == nil || got.Timezone != "UTC" {
		t.Fatalf("%+v", got)
	}
}

// What is known after the days of grace is a correction, once, on the next
// invoice; the final one stays as it was.
func TestLateUseIsACorrection(t *testing.T) {
	t.Parallel()
	s := acme(t, "2026-08-10T00:00:00Z")
	s.used(t, "acme", "calls", "month:202607", 300, 0)
	s.pass(t)
	first := s.invoices(t)[0]
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 12.00", "acme 0801T00..0901T00 draft  10.00")

	s.used(t, "acme", "calls", "month:202607", 420, 0)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 12.00", "acme 0801T00..0901T00 draft  11.20")
	s.at(t, "2026-09-10T00:00:00Z")
	s.pass(t)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 12.00", "acme 0801T00..0901T00 final INV-2026-000002 11.20", "acme 0901T00..1001T00 draft  10.00")

	s.used(t, "acme", "calls", "month:202607", 420, 20)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 12.00", "acme 0801T00..0901T00 final INV-2026-000002 11.20", "acme 0901T00..1001T00 draft  9.80")
	if diff := cmp.Diff(first, s.invoices(t)[0]); diff != "" {
		t.Fatalf("a final invoice changed:\n%s", diff)
	}
}

// A customer who has gone is corrected too: on an invoice of the running month.
func TestLateUseOfAnEndedSubscription(t *testing.T) {
	t.Parallel()
	s := acme(t, "2026-09-10T00:00:00Z")
	ended := at("2026-08-01T00:00:00Z")
	sub := subscribed(1, "2026-07-10T08:00:00Z")
	sub.Status, sub.EndsAt = sales.StatusEnded, &ended
	s.subscribe(t, sub)
	s.used(t, "acme", "calls", "month:202607", 300, 0)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 12.00")
	s.used(t, "acme", "calls", "month:202607", 310, 0)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 12.00", "acme 0901T00..1001T00 draft  0.10")
	s.at(t, "2026-10-03T23:59:59Z") // the next month has begun
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 12.00", "acme 0901T00..1001T00 draft  0.10")
	s.at(t, "2026-10-04T00:00:00Z")
	s.pass(t)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 12.00", "acme 0901T00..1001T00 final INV-2026-000002 0.10")
}

// A weekly job at 20:00Z and at 23:00Z, for a customer at UTC+2 whose Monday
// begins in between: one invoice a week.
func TestWeekOfACustomerEastOfUTC(t *testing.T) {
	t.Parallel()
	s := newStand(t, "2026-07-19T20:00:00Z")
	s.customer(t, sales.Customer{ID: "acme", Name: "Acme", Timezone: "Africa/Johannesburg"})
	weekly := pro(1)
	weekly.Period = "week"
	s.plan(t, weekly)
	s.subscribe(t, subscribed(1, "2026-07-14T08:00:00Z"))
	s.pass(t)
	s.want(t, "acme 0712T22..0719T22 draft  10.00")
	s.at(t, "2026-07-19T23:00:00Z")
	s.pass(t)
	s.want(t, "acme 0712T22..0719T22 draft  10.00", "acme 0719T22..0726T22 draft  10.00")
	if zone := s.invoices(t)[0].Timezone; zone != "Africa/Johannesburg" {
		t.Fatal(zone)
	}
	for _, now := range []string{"2026-07-22T22:00:00Z", "2026-07-26T20:00:00Z", "2026-07-26T23:00:00Z"} {
		s.at(t, now)
		s.pass(t)
	}
	s.want(t, "acme 0712T22..0719T22 final INV-2026-000001 10.00", "acme 0719T22..0726T22 draft  10.00", "acme 0726T22..0802T22 draft  10.00")
}

// Another calendar begins where the last final invoice ended: no time twice.
func TestAChangedCalendarInvoicesNoTimeTwice(t *testing.T) {
	t.Parallel()
	s := acme(t, "2026-08-10T00:00:00Z")
	s.pass(t)
	weekly := pro(2)
	weekly.Period = "week"
	s.plan(t, weekly)
	sub := subscribed(1, "2026-07-10T08:00:00Z")
	sub.Phases = append(sub.Phases, sales.Phase{Plan: "pro", PlanVersion: 2, From: at("2026-08-01T00:00:00Z")})
	s.subscribe(t, sub)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 10.00",
		"acme 0801T00..0803T00 final INV-2026-000002 10.00", "acme 0803T00..0810T00 draft  10.00", "acme 0810T00..0817T00 draft  10.00")
}

func TestTopUpsAreInvoicedOnceInTheirPeriod(t *testing.T) {
	t.Parallel()
	s := newStand(t, "2026-07-20T00:00:00Z")
	s.customer(t, sales.Customer{ID: "acme", Name: "Acme"})
	p := pro(1)
	p.Rules[0].Metric, p.Rules[0].Limit.Kind, p.Rules[0].Limit.Limit = "sms", "prepaid", nil
	p.Prices = []sales.Price{{Metric: "sms", Model: sales.PriceFlat, UnitPrice: "0.05"}}
	s.plan(t, p)
	s.subscribe(t, subscribed(1, "2026-07-10T08:00:00Z"))
	s.exec(t, `INSERT INTO wallets (key, document) VALUES ('acme/sms', '{"tenantId":"acme","metric":"sms","granted":300}')`)
	for id, when := range map[string]string{"g1": "2026-07-12T00:00:00Z", "g2": "2026-07-31T23:59:59Z", "g3": "2026-08-01T00:00:00Z"} {
		s.exec(t, `INSERT INTO grants (id, wallet, amount, "left", priority, note, granted_at) VALUES ($1, 'acme/sms', 100, 100, 0, '', $2)`, id, at(when))
		s.exec(t, `INSERT INTO wallet_ledger (wallet, at, kind, grant_id, amount, used, balance, actor) VALUES ('acme/sms', $2, 'topup', $1, 100, 0, 100, 'x')`, id, at(when))
	}
	s.at(t, "2026-08-20T00:00:00Z")
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 20.00", "acme 0801T00..0901T00 draft  15.00")
}

// A grant that is made with a month's first instant and expires with its last:
// the instant between two months belongs to one of them, so it is invoiced in its
// own month and in no other, and what it left is no line of any.
func TestAGrantThatEndsWithItsPeriodIsInvoicedOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t, "2026-09-10T00:00:00Z")
	s.customer(t, sales.Customer{ID: "acme", Name: "Acme"})
	p := pro(1)
	p.Rules[0].Metric, p.Rules[0].Limit.Kind, p.Rules[0].Limit.Limit = "sms", "prepaid", nil
	p.Prices = []sales.Price{{Metric: "sms", Model: sales.PriceFlat, UnitPrice: "0.05"}}
	s.plan(t, p)
	s.subscribe(t, subscribed(1, "2026-07-01T00:00:00Z"))
	s.exec(t, `INSERT INTO wallets (key, document, forfeited) VALUES ('acme/sms', '{"tenantId":"acme","metric":"sms","granted":100}', 60)`)
	first, end := at("2026-08-01T00:00:00Z"), at("2026-09-01T00:00:00Z")
	s.exec(t, `INSERT INTO grants (id, wallet, amount, "left", priority, note, granted_at, expires_at, ended_at) VALUES ('g', 'acme/sms', 100, 0, 0, '', $1, $2, $2)`, first, end)
	s.exec(t, `INSERT INTO wallet_ledger (wallet, at, kind, grant_id, amount, used, balance, actor) VALUES
		('acme/sms', $1, 'topup', 'g', 100, 0, 100, 'x'), ('acme/sms', $2, 'forfeit', 'g', 60, 40, 0, 'keeper')`, first, end)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 final INV-2026-000001 10.00", "acme 0801T00..0901T00 final INV-2026-000002 15.00", "acme 0901T00..1001T00 draft  10.00")
}

// A free plan is nobody's invoice, neither as a draft nor with a number, however
// often and long it is passed over; a draft that a dearer version had goes with it.
// What is owed from some period on begins there.
func TestAFreePlanIsNotInvoiced(t *testing.T) {
	t.Parallel()
	s := acme(t, "2026-07-10T09:00:00Z")
	free := pro(2)
	free.BaseFee, free.Prices = "0.00", nil
	s.plan(t, free)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 draft  10.00")
	sub := subscribed(1, "2026-07-10T08:00:00Z")
	sub.Phases = append(sub.Phases, sales.Phase{Plan: "pro", PlanVersion: 2, From: at("2026-07-11T00:00:00Z")})
	s.subscribe(t, sub)
	for _, now := range []string{"2026-07-11T00:00:00Z", "2026-08-03T23:59:59Z", "2026-08-04T00:00:00Z", "2026-08-04T00:01:00Z", "2026-09-04T00:00:00Z"} {
		s.at(t, now)
		s.used(t, "acme", "calls", "month:202607", 900, 0)
		s.pass(t)
		s.want(t)
	}
	var through time.Time
	if err := s.pool.QueryRow(t.Context(), `SELECT through FROM invoiced_subscriptions WHERE subscription = 'sub-1'`).Scan(&through); err != nil || !through.Equal(at("2026-09-01T00:00:00Z")) {
		t.Fatalf("invoiced through %s, %v", through, err)
	}
	sub.Phases = append(sub.Phases, sales.Phase{Plan: "pro", PlanVersion: 1, From: at("2026-09-05T00:00:00Z")})
	s.subscribe(t, sub)
	s.at(t, "2026-10-04T00:00:00Z")
	s.pass(t)
	s.want(t, "acme 0901T00..1001T00 final INV-2026-000001 10.00", "acme 1001T00..1101T00 draft  10.00")
}

// Many passes at once are one: no number is taken twice or missing.
func TestPassesAtOnceMakeOneInvoice(t *testing.T) {
	t.Parallel()
	s := acme(t, "2026-08-20T00:00:00Z")
	for _, id := range []string{"b", "c", "d"} {
		s.customer(t, sales.Customer{ID: id, Name: id})
		sub := subscribed(1, "2026-07-10T08:00:00Z")
		sub.ID, sub.Customer = "sub-"+id, id
		s.subscribe(t, sub)
	}
	var passes sync.WaitGroup
	for range 4 {
		job := s.another(t)
		passes.Go(func() {
			if err := job.Pass(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	passes.Wait()
	numbers := map[string]bool{}
	for _, i := range s.invoices(t) {
		if i.Status == sales.InvoiceFinal {
			numbers[i.Number] = true
		}
	}
	want := map[string]bool{"INV-2026-000001": true, "INV-2026-000002": true, "INV-2026-000003": true, "INV-2026-000004": true}
	if diff := cmp.Diff(want, numbers); diff != "" {
		t.Fatal(diff)
	}
	if n := len(s.invoices(t)); n != 8 {
		t.Fatalf("%d invoices of 4 customers and 2 periods", n)
	}
}

// A pass that is cut off at any statement leaves nothing half written, and the
// next one writes what the first would have.
func TestAPassThatDiesWritesAllOrNothing(t *testing.T) {
	t.Parallel()
	whole := acme(t, "2026-08-20T00:00:00Z")
	whole.used(t, "acme", "calls", "month:202607", 300, 0)
	whole.pass(t)
	want := brief(whole.invoices(t))
	s := whole
	for step := 1; ; step++ {
		s.exec(t, `TRUNCATE invoices, invoice_numbers, invoiced_subscriptions`)
		died := s.dyingPass(t, step)
		if got := brief(s.invoices(t)); died && len(got) != 0 {
			t.Fatalf("died at statement %d and wrote %q", step, got)
		}
		s.pass(t)
		if diff := cmp.Diff(want, brief(s.invoices(t))); diff != "" {
			t.Fatalf("died at statement %d (-want +got):\n%s", step, diff)
		}
		if !died {
			if step < 12 {
				t.Fatalf("only %d statements were tried", step)
			}
			return
		}
	}
}

func TestOneCustomerHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := acme(t, "2026-07-20T00:00:00Z")
	s.customer(t, sales.Customer{ID: "aaa", Name: "First in order"})
	sub := subscribed(99, "2026-07-10T08:00:00Z") // a version that is not there
	sub.ID, sub.Customer = "sub-aaa", "aaa"
	s.subscribe(t, sub)
	s.pass(t)
	s.want(t, "acme 0701T00..0801T00 draft  10.00")
}

func TestPostgresAwayIsNoEnd(t *testing.T) {
	t.Parallel()
	s := acme(t, "2026-07-20T00:00:00Z")
	s.pool.Close()
	if err := s.Pass(t.Context()); err == nil {
		t.Fatal("a pass without Postgres ends well")
	}
	if _, err := New(DefaultConfig(), Deps{}); err == nil {
		t.Fatal("a job without a pool is made")
	}
}
