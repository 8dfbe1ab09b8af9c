//go:build integration

package billing

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// stand is a database of its own with a customer, a plan and a clock.
type stand struct {
	*Service
	pool *pgxpool.Pool
	now  time.Time
}

func newStand(t *testing.T, now string) *stand {
	t.Helper()
	dsn := servertest.Postgres(t)
	if err := migrate.Up(t.Context(), dsn, "outbox", "controlplane", "keeper", "billing"); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := &stand{pool: pool}
	s.Service = s.another(t)
	s.at(t, now)
	return s
}

// another is a second job over the same database and clock.
func (s *stand) another(t *testing.T) *Service {
	t.Helper()
	service, err := New(Config{Every: time.Minute, Grace: 72 * time.Hour}, Deps{Pool: s.pool, Now: func() time.Time { return s.now }})
	if err != nil {
		t.Fatal(err)
	}
	return service
}

func (s *stand) at(t *testing.T, text string) {
	t.Helper()
	now, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	s.now = now
}

func (s *stand) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func document(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (s *stand) customer(t *testing.T, c sales.Customer) {
	t.Helper()
	s.exec(t, `INSERT INTO customers (key, document) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET document = excluded.document`, c.ID, document(t, c))
}

func (s *stand) plan(t *testing.T, p sales.Plan) {
	t.Helper()
	if found := plan.ValidatePlan(p); len(found) > 0 {
		t.Fatalf("plan %s: %v", p.ID, found)
	}
	p = plan.NormalizePlan(p)
	s.exec(t, `INSERT INTO plan_versions (plan, version, document, created_at) VALUES ($1, $2, $3, now())`, p.ID, p.Version, document(t, p))
}

func (s *stand) subscribe(t *testing.T, sub sales.Subscription) {
	t.Helper()
	last := sub.Phases[len(sub.Phases)-1]
	sub.Plan, sub.PlanVersion, sub.StartedAt = last.Plan, last.PlanVersion, &sub.Phases[0].From
	s.exec(t, `INSERT INTO subscriptions (key, document) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET document = excluded.document`, sub.ID, document(t, sub))
}

// used is what the keeper would write.
func (s *stand) used(t *testing.T, tenant, metric, name string, consumed, refunded int64) {
	t.Helper()
	s.exec(t, `INSERT INTO checkpoints (counter, tenant, metric, period, consumed, refunded, forfeited, charged_at, updated_at)
VALUES ($1, $2, $3, '', $4, $5, 0, now(), now())
ON CONFLICT (counter) DO UPDATE SET consumed = excluded.consumed, refunded = excluded.refunded`,
		fmt.Sprintf("{t:%s}:t::%s:quota:%s", tenant, metric, name), tenant, metric, consumed, refunded)
}

func (s *stand) pass(t *testing.T) {
	t.Helper()
	if err := s.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (s *stand) invoices(t *testing.T) []sales.Invoice {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), `SELECT document FROM invoices ORDER BY customer, ends_at, starts_at, currency`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[sales.Invoice])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// brief says what matters of invoices in a line each.
func brief(all []sales.Invoice) (out []string) {
	for _, i := range all {
		out = append(out, fmt.Sprintf("%s %s..%s %s %s %s", i.Customer, i.Start.Format("0102T15"), i.End.Format("0102T15"), i.Status, i.Number, i.Total))
	}
	return out
}

func pro(version int64) sales.Plan {
	limit := int64(1000)
	return sales.Plan{
		ID: "pro", Version: version, Name: "Pro", Currency: "EUR", BaseFee: "10.00",
		Rules: []sales.Template{
			{Metric: "calls", Limit: &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaRenewing, Limit: &limit}},
		},
		Prices: []sales.Price{{Metric: "calls", Model: sales.PriceFlat, UnitPrice: "0.01", Included: 100}},
	}
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func subscribed(version int64, from string) sales.Subscription {
	return sales.Subscription{
		ID: "sub-1", Customer: "acme", Status: sales.StatusActive,
		Phases: []sales.Phase{{Plan: "pro", PlanVersion: version, From: at(from)}},
	}
}
