package sales

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// sale is a transaction on what customers are subscribed to. It holds the lock
// of the customer it works on, so that two such transactions wait for each
// other; those that work on several lock them in the order of their ids.
type sale struct {
	*store.Store
	tx       pgx.Tx
	actor    string
	at       time.Time // the instant of every change in it
	customer sales.Customer
	plans    map[plan.Version]sales.Plan // those read so far; they never change
	// preview: the transaction only reads, and so locks nothing.
	preview bool
}

func (s *Handlers) sale(tx pgx.Tx, actor string) *sale {
	return &sale{Store: s.Store, tx: tx, actor: actor, at: s.Store.Now().UTC().Truncate(time.Millisecond), plans: map[plan.Version]sales.Plan{}}
}

// sell runs a transaction on what one customer is subscribed to. absent is the
// answer if there is no such customer.
func (s *Handlers) sell(ctx context.Context, actor, customer string, absent *api.Problem, do func(*sale) error) error {
	err := store.Retried(ctx, func() error {
		return pgx.BeginFunc(ctx, s.Store.Pool, func(tx pgx.Tx) error {
			x := s.sale(tx, actor)
			found, err := x.lockCustomer(ctx, customer)
			if err != nil {
				return err
			}
			if !found {
				return absent
			}
			return do(x)
		})
	})
	if err != nil {
		return fmt.Errorf("change subscriptions of customer: %w", err)
	}
	return nil
}

func (x *sale) lockCustomer(ctx context.Context, id string) (found bool, err error) {
	x.customer = sales.Customer{}
	err = x.tx.QueryRow(ctx, `SELECT document FROM customers WHERE key = $1 AND document IS NOT NULL`+x.forUpdate(), id).Scan(&x.customer)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("lock customer: %w", err)
	}
	return true, nil
}

// livePlan locks a plan against deletion and returns its newest version, or
// the one asked for; a Problem says what is not there.
func (x *sale) livePlan(ctx context.Context, id string, version int64) (sales.Plan, error) {
	var p sales.Plan
	err := x.tx.QueryRow(ctx, `SELECT document FROM plans WHERE key = $1 AND document IS NOT NULL FOR SHARE`, id).Scan(&p)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return p, api.Invalid(api.InBody("plan", "must be a plan that there is"))
	case err != nil:
		return p, fmt.Errorf("lock plan: %w", err)
	}
	if version != 0 && version != p.Version {
		if err := x.loadPlans(ctx, plan.Version{Plan: id, Number: version}); err != nil {
			return p, err
		}
		var ok bool
		if p, ok = x.plans[plan.Version{Plan: id, Number: version}]; !ok {
			return p, api.Invalid(api.InBody("planVersion", "must be a version of the plan; without it, it is the newest"))
		}
	}
	x.plans[plan.Version{Plan: id, Number: p.Version}] = p
	return p, x.mayBuy(p)
}

// mayBuy refuses a plan in money that the customer does not pay in.
func (x *sale) mayBuy(p sales.Plan) error {
	if x.customer.Currency == "" || x.customer.Currency == p.Currency {
		return nil
	}
	return api.Invalid(api.InBody("plan", fmt.Sprintf("must be priced in %s, in which the customer pays; it is in %s", x.customer.Currency, p.Currency)))
}

func (x *sale) loadPlans(ctx context.Context, wanted ...plan.Version) error {
	var missing []plan.Version
	for _, v := range wanted {
		if _, known := x.plans[v]; !known {
			missing = append(missing, v)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	found, err := readPlans(ctx, x.tx, missing)
	for v, p := range found {
		x.plans[v] = p
	}
	return err
}

// collides refuses a subscription that counts what another one of the customer
// counts: their rules would compete for one counter.
func (x *sale) collides(ctx context.Context, s sales.Subscription) error {
	metrics := plan.Metrics(x.plans[plan.Version{Plan: s.Plan, Number: s.PlanVersion}])
	rows, err := x.tx.Query(ctx, `SELECT s.key, s.plan, v.document FROM subscriptions s JOIN plan_versions v ON v.plan = s.plan AND v.version = s.plan_version
		WHERE s.customer = $1 AND s.status = 'active' AND s.key <> $2 ORDER BY s.key`, s.Customer, s.ID)
	if err != nil {
		return fmt.Errorf("read other subscriptions: %w", err)
	}
	var id, name string
	var other sales.Plan
	var taken *api.Problem
	_, err = pgx.ForEachRow(rows, []any{&id, &name, &other}, func() error {
		if taken == nil {
			taken = collision(id, name, other, s.Plan, metrics)
		}
		other = sales.Plan{}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read other subscriptions: %w", err)
	}
	if taken != nil {
		return taken
	}
	return nil
}

func collision(id, name string, other sales.Plan, wanted string, metrics map[string]bool) *api.Problem {
	if name == wanted {
		return api.NewProblem(http.StatusConflict, "already-subscribed", fmt.Sprintf("the customer is subscribed to plan %s already: %s", name, id))
	}
	for _, t := range other.Rules {
		if metrics[t.Metric] {
			p := api.NewProblem(http.StatusConflict, "metric-taken",
				fmt.Sprintf("metric %s is counted for this customer by plan %s already: %s", t.Metric, name, id))
			p.Errors = []api.FieldError{api.InBody("plan", "must not count metric "+t.Metric+", which plan "+name+" counts already")}
			return p
		}
	}
	return nil
}

func (x *sale) forUpdate() string {
	if x.preview {
		return ""
	}
	return " FOR UPDATE"
}

// lockSubscription reads a subscription under its lock; version 0 says there is none.
func (x *sale) lockSubscription(ctx context.Context, id string) (s sales.Subscription, version int64, err error) {
	err = x.tx.QueryRow(ctx, `SELECT version, document FROM subscriptions WHERE key = $1 AND document IS NOT NULL`+x.forUpdate(), id).Scan(&version, &s)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s, 0, nil
	case err != nil:
		return s, 0, fmt.Errorf("lock subscription: %w", err)
	}
	return s, version, nil
}
