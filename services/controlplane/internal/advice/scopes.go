package advice

import (
	"context"
	"fmt"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

// Scope is a scope in a document: of a rule, or of a rule of a plan.
type Scope struct {
	// ID is the document's, At the path before scope, What the subject of a message.
	ID, At, What string
	rules.Scope
}

// Scopes finds scopes that no request matches, since the catalog does not have
// the service or endpoint they name.
func Scopes(ctx context.Context, q store.Querier, scopes []Scope) ([]api.Warning, error) {
	var names []string
	for _, s := range scopes {
		if s.Service != "" {
			names = append(names, s.Service)
		}
	}
	if names == nil {
		return nil, nil
	}
	rows, err := q.Query(ctx, `SELECT document FROM catalog WHERE key = ANY($1) AND document IS NOT NULL`, names)
	if err != nil {
		return nil, fmt.Errorf("read services: %w", err)
	}
	services, err := pgx.CollectRows(rows, pgx.RowTo[catalog.Service])
	if err != nil {
		return nil, fmt.Errorf("read services: %w", err)
	}
	endpoints := make(map[string]map[string]bool, len(services)) // by service, in canonical spelling
	for _, s := range services {
		endpoints[s.Name] = make(map[string]bool, len(s.Endpoints))
		for _, e := range s.Endpoints {
			endpoints[s.Name][canonical(e.Pattern)] = true
		}
	}
	var found []api.Warning
	for _, s := range scopes {
		has, exists := endpoints[s.Service]
		switch {
		case s.Service == "":
		case !exists:
			found = append(found, api.Warning{Code: UnknownService, ID: s.ID, Field: s.At + "scope.service",
				Message: fmt.Sprintf("%s names service %q, which the catalog does not have", s.What, s.Service)})
		case s.Endpoint != "" && !has[canonical(s.Endpoint)]:
			found = append(found, api.Warning{Code: UnknownEndpoint, ID: s.ID, Field: s.At + "scope.endpoint",
				Message: fmt.Sprintf("%s names endpoint %q, which service %q does not have in the catalog", s.What, s.Endpoint, s.Service)})
		}
	}
	return found, nil
}

// canonical spells a pattern as rules do once they are normalised.
func canonical(pattern string) string {
	p, err := route.Parse(pattern)
	if err != nil {
		return pattern // written by an older version; compared as it is
	}
	return p.String()
}
