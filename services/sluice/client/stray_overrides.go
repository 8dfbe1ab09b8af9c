package client

import (
	"context"
	"fmt"
	"net/url"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// mostRules of a metric are looked at for an override's; of more, nothing is
// said.
const mostRules = 5000

// strayOverrides finds overrides that give no rule other numbers. That is no
// mistake where the rule is yet to come, or comes again, and so the control
// plane takes them.
func strayOverrides(ctx context.Context, c *connection, given []overrides.Override) ([]string, error) {
	counted := map[string][]*rule.Compiled{} // by metric
	var doubts []string
	for _, o := range given {
		known, asked := counted[o.Metric]
		if !asked {
			found, err := all[rules.Rule](ctx, c, ruleKind.path, url.Values{"metric": {o.Metric}}, mostRules)
			if err != nil {
				return nil, fmt.Errorf("read rules: %w", err)
			}
			for _, r := range found {
				if compiled, err := rule.Compile(r); err == nil { // else of a newer server
					known = append(known, compiled)
				}
			}
			counted[o.Metric] = known
		}
		if override, err := rule.CompileOverride(o); err == nil && len(known) < mostRules && !concernsAny(override, known) {
			doubts = append(doubts, fmt.Sprintf("override %s changes no rule: none counts metric %s of this %s by %s", o.ID, o.Metric, o.Subject.Kind, horizonOf(o)))
		}
	}
	return doubts, nil
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
