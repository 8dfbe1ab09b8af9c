//go:build integration

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// figure is one number out of Postgres.
func (s *stack) figure(sql string, args ...any) (n int64) {
	s.t.Helper()
	s.database(func(ctx context.Context, db *pgx.Conn) error { return db.QueryRow(ctx, sql, args...).Scan(&n) })
	return n
}

// holdTopUps holds that so many top-ups of five units were written, each once,
// wherever one leaves its mark.
func (s *stack) holdTopUps(n int) {
	s.t.Helper()
	for _, sql := range []string{
		`SELECT count(*) FROM grants`, `SELECT count(*) FROM topups`, `SELECT count(*) FROM wallet_ledger`,
		`SELECT count(*) FROM outbox WHERE topic = 'grants.v1'`, `SELECT count(*) FROM audit WHERE kind = 'wallet'`,
		`SELECT sum(granted)::bigint / 5 FROM wallets`, `SELECT sum(amount)::bigint / 5 FROM wallet_ledger`,
	} {
		if got := s.figure(sql); got != int64(n) {
			s.t.Errorf("%s is %d, want %d", sql, got, n)
		}
	}
}

// A control plane is killed at every step of a top-up. Its next start answers
// the repetition, and the units are there once.
func TestTopUpsOutliveTheirControlPlane(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	r := &reaper{t: t}
	control := s.process("controlplane", "controlplane", s.through(r))
	control.start().awaitReady()
	s.mustREST("POST", "/v1/customers", nil, map[string]any{"id": "acme", "name": "Acme"}, http.StatusCreated)
	s.mustREST("POST", "/v1/rules", nil, rules.Rule{
		ID: "units", Subject: rules.Subject{Kind: rules.SubjectTenant, Value: "*"}, Metric: "units",
		Limit: &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaPrepaid},
	}, http.StatusCreated)
	topUp := func(n int) answer {
		return s.rest("POST", unitsOf("acme")+"/topups", map[string]string{"Idempotency-Key": fmt.Sprint("order-", n)}, map[string]any{"amount": 5})
	}
	steps, written := 1, 0
	for ; ; steps++ {
		r.arm(control, steps)
		got := topUp(steps)
		if r.disarm() {
			if got.code != http.StatusCreated {
				t.Fatalf("unharmed it answers %d %s", got.code, got.body)
			}
			break
		}
		if got.code != 0 {
			t.Fatalf("killed at step %d it answers %d %s", steps, got.code, got.body)
		}
		if s.figure(`SELECT count(*) FROM grants`) == int64(steps) {
			written++
		}
		control.start().awaitReady()
		servertest.Eventually(t, 15*time.Second, "the repetition to be answered", func() bool {
			got = topUp(steps)
			return got.code != http.StatusConflict // Postgres hears a moment later that the dead one is gone
		})
		if got.code != http.StatusCreated {
			t.Fatalf("killed at step %d, its repetition answers %d %s", steps, got.code, got.body)
		}
		if s.holdTopUps(steps); t.Failed() {
			t.Fatalf("killed at step %d", steps)
		}
	}
	s.holdTopUps(steps)
	t.Logf("%d steps, %d of them after the commit", steps-1, written)
	if steps < 15 || written == 0 || written == steps-1 {
		t.Errorf("%d steps, %d after the commit: they are not what this test means", steps-1, written)
	}
}
