//go:build integration

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// soldPlan is a plan version as the control plane keeps it.
func (s *stack) soldPlan() {
	s.t.Helper()
	p := sales.Plan{
		ID: "pro", Version: 1, Name: "Pro", Currency: "EUR", BaseFee: "10.00", Period: "month", Proration: sales.ProrationNone,
		Prices: []sales.Price{{Metric: "calls", Model: sales.PriceFlat, UnitPrice: "0.01"}},
		Rules:  []sales.Template{{Metric: "calls", Limit: &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaRenewing, Limit: number(1000), Period: "month"}}},
	}
	s.database(func(ctx context.Context, db *pgx.Conn) error {
		_, err := db.Exec(ctx, `INSERT INTO plan_versions (plan, version, document, created_at) VALUES ($1, 1, $2, now())`, p.ID, text(s.t, p))
		return err
	})
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// owing makes a customer who was subscribed for the two months before this one.
func (s *stack) owing(customer string) {
	s.t.Helper()
	now := time.Now().UTC()
	end := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	s.subscription(sales.Subscription{Customer: customer, Status: sales.StatusEnded, EndsAt: &end}, end.AddDate(0, -2, 0))
}

// subscribed makes a customer who has been subscribed since a time.
func (s *stack) subscribed(customer string, since time.Time) {
	s.t.Helper()
	s.subscription(sales.Subscription{Customer: customer, Status: sales.StatusActive}, since)
}

// subscription writes one that began in the past, with its customer, as the
// control plane would have then.
func (s *stack) subscription(sub sales.Subscription, since time.Time) {
	s.t.Helper()
	sub.ID, sub.Plan, sub.PlanVersion, sub.StartedAt = "sub-"+sub.Customer, "pro", 1, &since
	sub.Phases = []sales.Phase{{Plan: "pro", PlanVersion: 1, From: since}}
	s.database(func(ctx context.Context, db *pgx.Conn) error {
		_, err := db.Exec(ctx, `WITH c AS (INSERT INTO customers (key, document) VALUES ($1, $2)) INSERT INTO subscriptions (key, document) VALUES ($3, $4)`,
			sub.Customer, text(s.t, sales.Customer{ID: sub.Customer, Name: sub.Customer}), sub.ID, text(s.t, sub))
		return err
	})
}

// forgetSubscription keeps later passes from working on a customer.
func (s *stack) forgetSubscription(customer string) {
	s.t.Helper()
	s.database(func(ctx context.Context, db *pgx.Conn) error {
		_, err := db.Exec(ctx, `DELETE FROM subscriptions WHERE customer = $1`, customer)
		return err
	})
}

// holdInvoices holds that each of so many customers has two invoices, and that
// their numbers have no gap.
func (s *stack) holdInvoices(customers int) {
	s.t.Helper()
	for sql, want := range map[string]int{
		`SELECT count(*) FROM invoices`:                                                                 2 * customers,
		`SELECT count(*) FROM invoices WHERE status = 'final' AND total = 1000`:                         2 * customers,
		`SELECT count(DISTINCT (customer, starts_at)) FROM invoices`:                                    2 * customers,
		`SELECT count(DISTINCT number) FROM invoices`:                                                   2 * customers,
		`SELECT max(right(number, 6)::int) FROM invoices`:                                               2 * customers,
		`SELECT sum(last)::int FROM invoice_numbers`:                                                    2 * customers,
		`SELECT count(*) FROM invoiced_subscriptions`:                                                   customers,
		`SELECT count(*) FROM invoiced_subscriptions WHERE through = date_trunc('month', now(), 'UTC')`: customers,
	} {
		if got := s.figure(sql); got != int64(want) {
			s.t.Errorf("%s is %d, want %d", sql, got, want)
		}
	}
}

// The billing job is killed at every step of a customer's invoices. Its next
// start writes what is missing: one invoice a period, numbers without gaps.
func TestInvoicesOutliveTheirJob(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	r := &reaper{t: t}
	config := s.through(r)
	config["billing"] = map[string]any{"every": "50ms", "grace": "1m"}
	job := s.process("billing", "billing", config)
	job.start().awaitReady()
	s.soldPlan()
	steps := 1
	for ; ; steps++ {
		customer := fmt.Sprintf("c%03d", steps)
		finals := func() int64 {
			return s.figure(`SELECT count(*) FROM invoices WHERE customer = $1 AND status = 'final'`, customer)
		}
		written := func() float64 { return job.metric("sluice_billing_invoices_total", `wrote="final"`) }
		before := written()
		r.arm(job, steps)
		s.owing(customer)
		servertest.Eventually(t, 20*time.Second, "the job to end one way or the other", func() bool { return r.struck() || written() == before+2 })
		lived := r.disarm()
		if !lived {
			job.start().awaitReady()
			servertest.Eventually(t, 20*time.Second, "the next job to write what is missing", func() bool { return finals() == 2 })
		}
		s.forgetSubscription(customer)
		if s.holdInvoices(steps); t.Failed() {
			t.Fatalf("killed at step %d", steps)
		}
		if lived {
			break
		}
	}
	t.Logf("%d steps", steps-1)
	if steps < 12 {
		t.Errorf("%d steps are not what this test means", steps-1)
	}
}
