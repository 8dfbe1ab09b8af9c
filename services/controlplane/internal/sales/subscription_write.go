package sales

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// put writes a new state of a subscription: its row, and the rules and
// overrides that it stands for from now on.
func (x *sale) put(ctx context.Context, s sales.Subscription) (store.Record, error) {
	w, err := x.workOf(ctx, s)
	if err != nil {
		return store.Record{}, err
	}
	return x.do(ctx, w)
}

func (x *sale) do(ctx context.Context, w work) (store.Record, error) {
	s := w.subscription
	stored, err := x.ApplyIn(ctx, x.tx, store.Write{
		Entity: store.Subscriptions, Key: s.ID, Actor: x.actor, Cond: api.Precondition{Either: true},
		Build: func(_ []byte, version int64) ([]byte, error) {
			s.Version = version
			return json.Marshal(s)
		},
	})
	if err != nil {
		return store.Record{}, err
	}
	return stored, x.writeTerms(ctx, w)
}

// writeTerms writes what differs, and when there is more to do.
func (x *sale) writeTerms(ctx context.Context, w work) error {
	for _, d := range w.rules {
		if err := x.writeRule(ctx, w.subscription.ID, d); err != nil {
			return err
		}
	}
	for _, d := range w.overrides {
		change := store.Write{Entity: store.Overrides, Key: d.key}
		if after := d.after; after != nil {
			change.Build = func(_ []byte, version int64) ([]byte, error) {
				after.Version = version
				return json.Marshal(after)
			}
		}
		if err := x.writeOwned(ctx, w.subscription.ID, change); err != nil {
			return err
		}
	}
	var due *time.Time
	if !w.terms.Due.IsZero() {
		due = &w.terms.Due
	}
	if _, err := x.tx.Exec(ctx, `UPDATE subscriptions SET due_at = $2 WHERE key = $1`, w.subscription.ID, due); err != nil {
		return fmt.Errorf("note when a subscription is due: %w", err)
	}
	return nil
}

func (x *sale) writeRule(ctx context.Context, subscription string, d difference[rules.Rule]) error {
	change := store.Write{Entity: store.Rules, Key: d.key}
	if after := d.after; after != nil {
		change.Build = func(current []byte, version int64) ([]byte, error) {
			after.Version = version
			if err := rule.CarryStored(current, after, x.at); err != nil {
				return nil, err
			}
			return json.Marshal(after)
		}
	}
	return x.writeOwned(ctx, subscription, change)
}

func (x *sale) writeOwned(ctx context.Context, subscription string, w store.Write) error {
	w.Owner, w.Actor, w.Cond = subscription, x.actor, api.Precondition{Either: true}
	_, err := x.ApplyIn(ctx, x.tx, w)
	return err
}

// settle brings a subscription to what follows from the time alone: its end,
// and the quotas of its running periods.
func (x *sale) settle(ctx context.Context, s sales.Subscription) error {
	if s.Status == sales.StatusActive && s.EndsAt != nil && !x.at.Before(*s.EndsAt) {
		s.Status = sales.StatusEnded
		_, err := x.put(ctx, s)
		return err
	}
	w, err := x.workOf(ctx, s)
	if err != nil {
		return err
	}
	return x.writeTerms(ctx, w)
}

// settleAll settles those subscriptions of the locked customer that a condition
// names.
func (x *sale) settleAll(ctx context.Context, where string, args ...any) error {
	found, err := stored[sales.Subscription](ctx, x.tx, `SELECT key, document FROM subscriptions WHERE `+where+` ORDER BY key FOR UPDATE`, args...)
	if err != nil {
		return err
	}
	for _, s := range found {
		if err := x.settle(ctx, s.value); err != nil {
			return err
		}
	}
	return nil
}
