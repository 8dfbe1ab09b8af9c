package sales

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

const (
	// maxRows bounds a transaction: a huge one would delay every rule behind it.
	maxRows = 500
	// movePage is how many customers one call moves at most.
	movePage = 200
)

// mover is one call of a move. What is left to do is read from the
// subscriptions themselves, so a move needs no state of its own: it may stop
// anywhere and be begun again.
type mover struct {
	*Handlers
	move Move
	plan string
	to   sales.Plan
	rows int // that a customer may write
}

// moving is a subscription that is to be moved.
type moving struct{ customer, subscription string }

func (m mover) run(ctx context.Context, after string) (Moved, error) {
	out := Moved{Preview: m.move.Preview, Customers: []MovedCustomer{}}
	if after == "" {
		if err := m.strangers(ctx, &out); err != nil {
			return out, err
		}
	}
	left, err := m.page(ctx, after)
	if err != nil {
		return out, err
	}
	until := m.Store.Now().Add(m.RequestTimeout / 2) // the rest is the answer's
	for room := movePage; len(left) > 0 && room > 0 && !m.Store.Now().After(until); {
		n := min(len(left), room, max(1, maxRows/m.rows))
		done, err := m.batch(ctx, left[:n])
		if err != nil {
			return out, err
		}
		out.Customers = append(out.Customers, done...)
		after, left, room = left[n-1].customer, left[n:], room-n
	}
	if len(left) > 0 {
		out.Next = api.EncodeCursor("move", after)
	}
	out.Remaining, err = m.remaining(ctx)
	return out, err
}

// selected are the subscriptions on version from that the move is about.
const selected = `FROM subscriptions WHERE plan = $1 AND plan_version = $2 AND status = 'active' AND ($3 OR customer = ANY($4))`

func (m mover) page(ctx context.Context, after string) ([]moving, error) {
	rows, err := m.Store.Pool.Query(ctx, `SELECT customer, key `+selected+` AND customer > $5 ORDER BY customer LIMIT $6`,
		m.plan, m.move.From, m.move.All, m.move.Customers, after, movePage+1)
	if err != nil {
		return nil, fmt.Errorf("read subscriptions to move: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v moving, err error) {
		return v, row.Scan(&v.customer, &v.subscription)
	})
	if err != nil {
		return nil, fmt.Errorf("read subscriptions to move: %w", err)
	}
	return found, nil
}

func (m mover) remaining(ctx context.Context) (n int, err error) {
	err = m.Store.Pool.QueryRow(ctx, `SELECT count(*) `+selected, m.plan, m.move.From, m.move.All, m.move.Customers).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count subscriptions to move: %w", err)
	}
	return n, nil
}

// strangers refuses those named who have neither version.
func (m mover) strangers(ctx context.Context, out *Moved) error {
	rows, err := m.Store.Pool.Query(ctx, `SELECT DISTINCT named FROM unnest($1::text[]) named WHERE NOT EXISTS (SELECT 1 FROM subscriptions
		WHERE customer = named AND plan = $2 AND plan_version IN ($3, $4) AND status = 'active') ORDER BY 1`,
		m.move.Customers, m.plan, m.move.From, m.move.To)
	if err != nil {
		return fmt.Errorf("look for customers to move: %w", err)
	}
	var customer string
	if _, err := pgx.ForEachRow(rows, []any{&customer}, func() error {
		out.Customers = append(out.Customers, MovedCustomer{Customer: customer, Refused: fmt.Sprintf("is not subscribed to version %d", m.move.From)})
		return nil
	}); err != nil {
		return fmt.Errorf("look for customers to move: %w", err)
	}
	return nil
}

// batch moves some customers, in the order of their ids, in one transaction. A
// preview's may only read.
func (m mover) batch(ctx context.Context, some []moving) (done []MovedCustomer, err error) {
	actor, mode := api.Actor(ctx), pgx.TxOptions{}
	if m.move.Preview {
		mode.AccessMode = pgx.ReadOnly
	}
	err = store.Retried(ctx, func() error {
		done = nil
		return pgx.BeginTxFunc(ctx, m.Store.Pool, mode, func(tx pgx.Tx) error {
			x := m.sale(tx, actor)
			x.preview = m.move.Preview
			for _, v := range some {
				one, err := m.one(ctx, x, v)
				if err != nil {
					return err
				}
				if one != nil {
					done = append(done, *one)
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("move customers: %w", err)
	}
	return done, nil
}

// one moves a customer, nil where there was nothing to do any more: somebody
// else moved it, or it ended.
func (m mover) one(ctx context.Context, x *sale, v moving) (*MovedCustomer, error) {
	if found, err := x.lockCustomer(ctx, v.customer); err != nil || !found {
		return nil, err
	}
	s, version, err := x.lockSubscription(ctx, v.subscription)
	if err != nil {
		return nil, err
	}
	if version == 0 || s.Status != sales.StatusActive || s.Plan != m.plan || s.PlanVersion != m.move.From {
		return nil, nil
	}
	out := &MovedCustomer{Customer: v.customer, Subscription: s.ID}
	w, err := m.workOf(ctx, x, s)
	var refused *api.Problem
	switch {
	case errors.As(err, &refused):
		out.Refused = refused.Reason()
		return out, nil
	case err != nil:
		return nil, err
	}
	for _, d := range w.rules {
		out.Rules = append(out.Rules, RuleChange{ID: d.key, Before: d.before, After: d.after})
	}
	for _, d := range w.overrides {
		out.Overrides = append(out.Overrides, OverrideChange{ID: d.key, Before: d.before, After: d.after})
	}
	if m.move.Preview {
		return out, nil
	}
	_, err = x.do(ctx, w)
	return out, err
}

// workOf works out a move; a Problem says why it cannot be.
func (m mover) workOf(ctx context.Context, x *sale, s sales.Subscription) (work, error) {
	s.PlanVersion = m.to.Version
	s.Phases = append(s.Phases, sales.Phase{Plan: s.Plan, PlanVersion: s.PlanVersion, From: x.at})
	if err := x.loadPlans(ctx, plan.VersionOf(s.Phases[len(s.Phases)-1])); err != nil {
		return work{}, err
	}
	if err := x.mayBuy(m.to); err != nil {
		return work{}, err
	}
	if err := x.collides(ctx, s); err != nil {
		return work{}, err
	}
	return x.workOf(ctx, s)
}
