package client

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// placed is what names a scope: a rule, or a rule of a plan.
type placed struct {
	what  string
	scope rules.Scope
}

// doubtRules finds rules that hold for nothing: by their scope, or since another
// stands before them.
func doubtRules(ctx context.Context, c *connection, applied []rules.Rule) ([]string, error) {
	scopes := make([]placed, len(applied))
	for i, r := range applied {
		scopes[i] = placed{"rule " + r.ID, r.Scope}
	}
	doubts, err := strayScopes(ctx, c, scopes)
	return append(outdone(applied), doubts...), err
}

// outdone finds rules that never hold beside the others applied with them; those
// of subscriptions are not people's to mend.
func outdone(applied []rules.Rule) (doubts []string) {
	var written []*rule.Compiled
	for _, r := range applied {
		if r.Origin != nil {
			continue
		}
		if compiled, err := rule.Compile(r); err == nil { // else of a newer server
			written = append(written, compiled)
		}
	}
	for _, o := range rule.FindOutdone(written) {
		doubts = append(doubts, fmt.Sprintf("rule %s never holds: rule %s has the same subject, scope, metric and horizon, and wins: %s", o.Rule.ID, o.By.ID, o.Because))
	}
	return doubts
}

// doubtPlans finds rules of plans that will hold for nothing.
func doubtPlans(ctx context.Context, c *connection, applied []sales.Plan) ([]string, error) {
	var scopes []placed
	for _, p := range applied {
		for i, r := range p.Rules {
			scopes = append(scopes, placed{fmt.Sprintf("plan %s: rules[%d]", p.ID, i), r.Scope})
		}
	}
	return strayScopes(ctx, c, scopes)
}

// strayScopes finds scopes that hold for nothing, since the catalog does not
// have the service or endpoint they name. That is no mistake where the service
// is yet to come, and so the control plane takes them.
func strayScopes(ctx context.Context, c *connection, applied []placed) ([]string, error) {
	if !slices.ContainsFunc(applied, func(p placed) bool { return p.scope.Service != "" }) {
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
	for _, p := range applied {
		has, there := endpoints[p.scope.Service]
		switch {
		case p.scope.Service == "":
		case !there:
			doubts = append(doubts, fmt.Sprintf("%s names service %q, which the catalog does not have", p.what, p.scope.Service))
		case p.scope.Endpoint != "" && !has[canonical(p.scope.Endpoint)]:
			doubts = append(doubts, fmt.Sprintf("%s names endpoint %q, which service %q does not have in the catalog", p.what, p.scope.Endpoint, p.scope.Service))
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
