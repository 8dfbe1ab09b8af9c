package client

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// strayScopes finds rules that hold for nothing, since the catalog does not
// have the service or endpoint they name. That is no mistake where the service
// is yet to come, and so the control plane takes them.
func strayScopes(ctx context.Context, c *connection, applied []rules.Rule) ([]string, error) {
	if !slices.ContainsFunc(applied, func(r rules.Rule) bool { return r.Scope.Service != "" }) {
		return nil, nil
	}
	services, err := all[catalog.Service](ctx, c, serviceKind.path, url.Values{}, 0)
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
	var doubts []string
	for _, r := range applied {
		has, there := endpoints[r.Scope.Service]
		switch {
		case r.Scope.Service == "":
		case !there:
			doubts = append(doubts, fmt.Sprintf("rule %s names service %q, which the catalog does not have", r.ID, r.Scope.Service))
		case r.Scope.Endpoint != "" && !has[canonical(r.Scope.Endpoint)]:
			doubts = append(doubts, fmt.Sprintf("rule %s names endpoint %q, which service %q does not have in the catalog", r.ID, r.Scope.Endpoint, r.Scope.Service))
		}
	}
	return doubts, nil
}

// canonical spells a pattern as rules do once they are normalised.
func canonical(pattern string) string {
	p, err := route.Parse(pattern)
	if err != nil {
		return pattern // an older server's; compared as it is
	}
	return p.String()
}
