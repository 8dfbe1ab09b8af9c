package billing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/invoice"
	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// used is what was used in a period of what its plans renew, by metric.
func (a *account) used(ctx context.Context, tx pgx.Tx, d *due) (map[string]invoice.Use, error) {
	byMetric := map[string]string{}
	var counters []string
	for _, h := range d.held {
		for _, r := range plan.Rules(h.Plan, a.customer, "") {
			if _, seen := byMetric[r.Metric]; seen || r.Limit == nil || r.Limit.Kind != rules.QuotaRenewing || r.Mode == rules.ModeShadow {
				continue
			}
			counter, err := counterOf(r, d)
			if err != nil {
				return nil, err
			}
			byMetric[r.Metric] = counter
			counters = append(counters, counter)
		}
	}
	known, err := checkpoints(ctx, tx, a.customer.ID, counters)
	if err != nil {
		return nil, err
	}
	out := make(map[string]invoice.Use, len(byMetric))
	for metric, counter := range byMetric {
		use := known[counter]
		use.Counter = counter
		out[metric] = use
	}
	return out, nil
}

// counterOf names the counter of a rule in the period, as usage events do.
func counterOf(r rules.Rule, d *due) (string, error) {
	c, err := rule.Compile(r)
	if err != nil {
		return "", fmt.Errorf("rule of a plan: %w", err)
	}
	m := rule.Match{Rule: c}
	return m.CounterKey() + ":" + c.Calendar.At(d.bounds.Start).Name(), nil
}

// checkpoints reads what the keeper knows of counters; those it does not know
// are left out.
func checkpoints(ctx context.Context, tx pgx.Tx, tenant string, counters []string) (map[string]invoice.Use, error) {
	rows, err := tx.Query(ctx, `SELECT counter, consumed, refunded FROM checkpoints WHERE tenant = $1 AND counter = ANY ($2)`, tenant, counters)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	out := map[string]invoice.Use{}
	var use invoice.Use
	_, err = pgx.ForEachRow(rows, []any{&use.Counter, &use.Consumed, &use.Refunded}, func() error {
		out[use.Counter] = use
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return out, nil
}
