package gateway

import (
	"net/http"
	"slices"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/explain"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// newExplainer ties the answers of POST /v1/explain to the code that requests go
// through.
func newExplainer(g *gate, index *rule.Index, t *tables, operators identify.Operators) *explain.Explainer {
	return explain.New(explain.Options{
		Index: index, Ready: t.ready, Unread: func() []string { return t.rules.State().Unread },
		Key: func(id string) (*identify.Key, bool) {
			e, ok := t.keys.Get(id)
			return e.Value, ok
		},
		Service: func(name string) (*routing.Service, bool) {
			e, ok := t.catalog.Get(name)
			return e.Value, ok
		},
		Routes: g.routes, Admission: &g.admission, Counter: g.counter, Store: g.charger.Store, Foretell: foretell, Wait: waitFor,
		Operators: operators, Now: g.now, Log: g.log,
	})
}

// waitFor is the Retry-After of a counter that denies, in seconds.
func waitFor(state limit.State) int64 {
	seconds, _ := wait([]charge.Judgement{{State: state}})
	return seconds
}

// foretell is the status that the gate would answer a request with, and its
// Retry-After before jitter, which only adds to it; 0 for neither. The verdict is
// reached by the code that requests go through.
func foretell(matches, asked []rule.Match, counters []limit.Counter, d limit.Decision) (status int, retryAfter int64) {
	q := &charge.Charges{Matches: matches}
	closed := func(m rule.Match) bool {
		return m.Rule.Unreadable != "" && !m.Rule.Shadow && m.Rule.OnStoreLoss == rules.StoreLossClosed
	}
	switch {
	case q.DenyMissing():
	case slices.ContainsFunc(matches, closed):
		if !q.DenyUnentitled() {
			return http.StatusServiceUnavailable, 0 // by chance, 1 to 3 seconds
		}
	default:
		d.Allowed = !slices.ContainsFunc(d.States, func(s limit.State) bool { return !s.Shadow && !s.Allowed })
		q.Judge(asked, counters, d)
	}
	if q.Verdict.Status == http.StatusTooManyRequests {
		retryAfter, _ = wait(q.Judged)
	}
	return q.Verdict.Status, retryAfter
}
