package rules

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/jackc/pgx/v5"
)

// Bounds of what a refused deletion tells.
const (
	mostUsersCounted = 1000 // of a kind; of more it says that there are
	mostUsersNamed   = 3
)

// serviceChanged refuses to delete a service that a rule's scope or a plan names:
// its customers, who pay for it maybe, would be told 404 at once. A rule that is
// written at the same instant is not waited for: a rule may name what is not there.
func serviceChanged(ctx context.Context, tx pgx.Tx, before, after store.Record) error {
	if after.Document != nil {
		return nil
	}
	var using []string
	for _, u := range [...]struct{ one, several, sql string }{
		{"rule", "rules", `SELECT key FROM rules
			WHERE document->'scope'->>'service' = $1 AND document->'origin'->>'subscription' IS NULL`},
		{"plan", "plans", `SELECT key FROM plans
			WHERE document->'rules' @> jsonb_build_array(jsonb_build_object('scope', jsonb_build_object('service', $1::text)))`},
		// What an active subscription sells is in its rules, of whichever version its plan is.
		{"active subscription", "active subscriptions", `SELECT DISTINCT document->'origin'->>'subscription' AS key FROM rules
			WHERE document->'scope'->>'service' = $1 AND document->'origin'->>'subscription' IS NOT NULL`},
	} {
		rows, err := tx.Query(ctx, u.sql+` AND document IS NOT NULL ORDER BY key LIMIT $2`, before.Key, mostUsersCounted+1)
		if err != nil {
			return fmt.Errorf("look for %s of service: %w", u.several, err)
		}
		keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
		switch {
		case err != nil:
			return fmt.Errorf("look for %s of service: %w", u.several, err)
		case len(keys) == 1:
			using = append(using, fmt.Sprintf("1 %s (%s)", u.one, keys[0]))
		case len(keys) > 1:
			using = append(using, countedAndNamed(keys, u.several))
		}
	}
	if using == nil {
		return nil
	}
	return api.NewProblem(http.StatusConflict, "in-use", fmt.Sprintf("the service is named by %s; delete, change or end them before", strings.Join(using, ", ")))
}

// countedAndNamed tells how many there are, and the first of them.
func countedAndNamed(keys []string, what string) string {
	count := fmt.Sprint(len(keys))
	if len(keys) > mostUsersCounted {
		count = fmt.Sprintf("over %d", mostUsersCounted)
	}
	names := strings.Join(keys[:min(len(keys), mostUsersNamed)], ", ")
	if len(keys) > mostUsersNamed {
		names += ", …"
	}
	return fmt.Sprintf("%s %s (%s)", count, what, names)
}
