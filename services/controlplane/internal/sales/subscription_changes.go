package sales

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// difference is a rule or override that is not what its subscription stands
// for: before is nil where there is none, after where there shall be none.
type difference[T any] struct {
	key           string
	before, after *T
}

// work is what is to be written for a subscription.
type work struct {
	subscription sales.Subscription
	terms        plan.Terms
	rules        []difference[rules.Rule]
	overrides    []difference[overrides.Override]
}

// workOf compares what a subscription stands for with what is there; it writes
// nothing. The subscription need not be stored yet.
func (x *sale) workOf(ctx context.Context, s sales.Subscription) (work, error) {
	w := work{subscription: s}
	versions := make([]plan.Version, len(s.Phases))
	for i, p := range s.Phases {
		versions[i] = plan.VersionOf(p)
	}
	if err := x.loadPlans(ctx, versions...); err != nil {
		return w, err
	}
	var err error
	if w.terms, err = plan.TermsAt(s, x.customer, x.plans, x.at); err != nil {
		return w, err
	}
	if w.rules, err = x.ruleDifferences(ctx, s.ID, w.terms.Rules); err != nil {
		return w, err
	}
	w.overrides, err = x.overrideDifferences(ctx, s.ID, w.terms.Overrides)
	return w, err
}

func (x *sale) ruleDifferences(ctx context.Context, subscription string, want []rules.Rule) ([]difference[rules.Rule], error) {
	// A subscription's rules are those whose ids begin with it and a colon; the
	// semicolon is the byte behind that.
	have, err := stored[rules.Rule](ctx, x.tx, `SELECT key, document FROM rules
		WHERE key > $1 || ':' AND key < $1 || ';' AND document IS NOT NULL ORDER BY key`, subscription)
	if err != nil {
		return nil, err
	}
	return differences(want, have, func(r rules.Rule) string { return r.ID }, func(r rules.Rule) rules.Rule {
		origin := r.Origin
		r = rule.Strip(r)
		r.Version, r.Origin = 0, origin
		return r
	})
}

func (x *sale) overrideDifferences(ctx context.Context, subscription string, want []overrides.Override) ([]difference[overrides.Override], error) {
	keys := make([]string, len(want))
	for i, o := range want {
		keys[i] = o.ID
	}
	have, err := stored[overrides.Override](ctx, x.tx, `SELECT key, document FROM overrides
		WHERE document IS NOT NULL AND (document->'origin'->>'subscription' = $1 OR key = ANY($2)) ORDER BY key`, subscription, keys)
	if err != nil {
		return nil, err
	}
	found, err := differences(want, have, func(o overrides.Override) string { return o.ID }, func(o overrides.Override) overrides.Override {
		o.Version = 0
		return o
	})
	// What people have agreed with a customer goes before what a plan works out.
	kept := found[:0]
	for _, d := range found {
		if d.before == nil || d.before.Origin != nil && d.before.Origin.Subscription == subscription {
			kept = append(kept, d)
		}
	}
	return kept, err
}

// row is a stored document by its key.
type row[T any] struct {
	key   string
	value T
}

func stored[T any](ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]row[T], error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read what a subscription wrote: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (v row[T], err error) {
		return v, r.Scan(&v.key, &v.value)
	})
	if err != nil {
		return nil, fmt.Errorf("read what a subscription wrote: %w", err)
	}
	return found, nil
}

// differences are in the order of want, what is no longer wanted last: while
// they are carried, more is in force and not less.
func differences[T any](want []T, have []row[T], key func(T) string, plain func(T) T) ([]difference[T], error) {
	there := make(map[string]T, len(have))
	for _, h := range have {
		there[h.key] = h.value
	}
	var out []difference[T]
	for _, w := range want {
		before, exists := there[key(w)]
		delete(there, key(w))
		if !exists {
			out = append(out, difference[T]{key: key(w), after: &w})
			continue
		}
		same, err := equal(plain(before), plain(w))
		if err != nil {
			return nil, err
		}
		if !same {
			out = append(out, difference[T]{key(w), &before, &w})
		}
	}
	for _, h := range have {
		if _, left := there[h.key]; left {
			out = append(out, difference[T]{key: h.key, before: &h.value})
		}
	}
	return out, nil
}

// equal compares documents as they are carried.
func equal(a, b any) (bool, error) {
	first, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("encode document: %w", err)
	}
	second, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("encode document: %w", err)
	}
	return bytes.Equal(first, second), nil
}
