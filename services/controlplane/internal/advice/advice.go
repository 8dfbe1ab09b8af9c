package advice

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

// mostRules of the metrics in question are read; where there are more, nothing
// is said about rivals and overrides.
const mostRules = 5000

// Rules finds rules that never hold: nothing matches their scope, or another rule
// wins every request that they match. Of such a pair either may be among docs.
func Rules(ctx context.Context, q store.Querier, docs []rules.Rule) ([]api.Warning, error) {
	stored, err := rulesOf(ctx, q, docs, func(r rules.Rule) string { return r.Metric })
	if err != nil {
		return nil, err
	}
	given := make(map[string]bool, len(docs))
	var scopes []Scope
	for _, r := range docs {
		given[r.ID] = true
		scopes = append(scopes, Scope{ID: r.ID, What: "rule " + r.ID, Scope: r.Scope})
	}
	var rivals []*rule.Compiled
	for _, r := range append(stored, docs...) {
		// Rules of subscriptions are not people's to mend.
		if compiled, err := rule.Compile(r); err == nil && r.Origin == nil {
			rivals = append(rivals, compiled)
		}
	}
	var found []api.Warning
	for _, u := range rule.FindUnreachable(rivals) {
		if given[u.Rule.ID] || given[u.By.ID] {
			found = append(found, api.Warning{Code: UnreachableRule, ID: u.Rule.ID, Field: "id",
				Message: fmt.Sprintf("rule %s never holds: rule %s has the same subject, scope, metric and horizon, and wins: %s", u.Rule.ID, u.By.ID, u.Because)})
		}
	}
	unmatched, err := Scopes(ctx, q, scopes)
	return append(found, unmatched...), err
}

// Overrides finds overrides that change no rule.
func Overrides(ctx context.Context, q store.Querier, docs []overrides.Override) ([]api.Warning, error) {
	stored, err := rulesOf(ctx, q, docs, func(o overrides.Override) string { return o.Metric })
	if err != nil || len(stored) == mostRules {
		return nil, err
	}
	var known []*rule.Compiled
	for _, r := range stored {
		if compiled, err := rule.Compile(r); err == nil {
			known = append(known, compiled)
		}
	}
	var found []api.Warning
	for _, o := range docs {
		if override, err := rule.CompileOverride(o); err == nil && !concernsAny(override, known) {
			found = append(found, api.Warning{Code: UnmatchedOverride, ID: o.ID, Field: "metric",
				Message: fmt.Sprintf("override %s changes no rule: none counts metric %s of this %s by %s", o.ID, o.Metric, o.Subject.Kind, horizonOf(o))})
		}
	}
	return found, nil
}

func horizonOf(o overrides.Override) string {
	switch {
	case o.Window != "":
		return "a window of " + o.Window
	case o.Period != "":
		return "a period of " + o.Period
	}
	return "any window or period"
}

func concernsAny(o *rule.CompiledOverride, known []*rule.Compiled) bool {
	for _, c := range known {
		if o.Concerns(c) {
			return true
		}
	}
	return false
}

// rulesOf reads the stored rules that count a metric of docs, without those that
// docs replace.
func rulesOf[T any](ctx context.Context, q store.Querier, docs []T, metric func(T) string) ([]rules.Rule, error) {
	var metrics, replaced []string
	for _, d := range docs {
		metrics = append(metrics, metric(d))
		if r, ok := any(d).(rules.Rule); ok {
			replaced = append(replaced, r.ID)
		}
	}
	rows, err := q.Query(ctx, `SELECT document FROM rules WHERE document->>'metric' = ANY($1) AND document IS NOT NULL
		AND key <> ALL(coalesce($2, '{}'::text[])) ORDER BY key LIMIT $3`, metrics, replaced, mostRules)
	if err != nil {
		return nil, fmt.Errorf("read rules of metrics: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[rules.Rule])
	if err != nil {
		return nil, fmt.Errorf("read rules of metrics: %w", err)
	}
	return found, nil
}

// Tenant finds a tenant of a key that is no customer, where there are customers.
func Tenant(ctx context.Context, q store.Querier, key, tenant string) ([]api.Warning, error) {
	var one int
	err := q.QueryRow(ctx, `SELECT 1 WHERE EXISTS (SELECT 1 FROM customers WHERE document IS NOT NULL)
		AND NOT EXISTS (SELECT 1 FROM customers WHERE key = $1 AND document IS NOT NULL)`, tenant).Scan(&one)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for customer: %w", err)
	}
	return []api.Warning{{Code: UnknownCustomer, ID: key, Field: "tenantId",
		Message: fmt.Sprintf("no customer has the id %q; a tenant needs none, but the name may be misspelt (sluice customers list)", tenant)}}, nil
}
