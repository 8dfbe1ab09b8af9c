package explain

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/gateway/internal/charge"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// Options of an Explainer; all are required.
type Options struct {
	Index *rule.Index
	// Ready says why there is nothing to explain yet; Unread are the rules that
	// cannot be read by this build.
	Ready  func() error
	Unread func() []string
	// Key and Service find live records by their id and name.
	Key       func(id string) (*identify.Key, bool)
	Service   func(name string) (*routing.Service, bool)
	Routes    *routing.Table
	Admission *routing.Admission

	// Counter is a rule's counter for a cost; Store asks counters.
	Counter func(m *rule.Match, cost int64) limit.Counter
	Store   limit.Store

	Operators identify.Operators
	Now       func() time.Time
	Log       *slog.Logger
}

// Explainer answers questions.
type Explainer struct{ o Options }

// New returns an Explainer.
func New(o Options) *Explainer { return &Explainer{o: o} }

// Explain answers a question. It charges nothing.
func (x *Explainer) Explain(ctx context.Context, q Question) (*Explanation, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	who, err := x.askedIdentity(q)
	if err != nil {
		return nil, err
	}
	target, path, err := x.askedTarget(q)
	if err != nil {
		return nil, err
	}
	var req rule.Request
	target.Ask(&req, who, q.Method, path)
	if req.Now = x.o.Now(); q.Cost != nil {
		req.Cost = *q.Cost
	}
	found := x.o.Index.Explain(&req)
	out := &Explanation{
		Request: askedView{
			Method: req.Method, Path: req.Path, Service: req.Service, Endpoint: req.Endpoint, Demands: target.Demands,
			Cached: target.Stores(q.Method, path), Cost: req.Cost,
			TenantID: req.TenantID, UserID: req.UserID, ApplicationID: req.ApplicationID, APIKeyID: req.APIKeyID,
		},
		Rules: make([]consideredView, len(found.Considered)), Winners: make([]winnerView, len(found.Matches)), Unread: x.o.Unread(),
		Note: aboutCost(target, q.Cost),
	}
	for i := range found.Considered {
		out.Rules[i] = viewConsidered(&found.Considered[i])
	}
	x.peek(ctx, req.Cost, found.Matches, out)
	if r := x.o.Admission.Check(target, who); r != nil {
		out.Refused, out.WouldPass = &refusedView{r.Status, r.Title, r.Detail}, new(bool)
		out.Status, out.RetryAfter = r.Status, 0
	}
	return out, nil
}

// aboutCost says what else the gate does with a cost above the service's maxCost,
// which does not bound the cost that a trusted peer states; nil is the catalog's
// cost, which may be above maxCost.
func aboutCost(s *routing.Service, asked *int64) string {
	if asked == nil || *asked <= s.MaxCost {
		return ""
	}
	note := fmt.Sprintf("cost %d is above maxCost %d of service %s: this is told of a request whose trusted peer names it (%s); a reservation of it is refused (400)",
		*asked, s.MaxCost, s.Name, identify.HeaderCost)
	if s.CostHeader != "" {
		note += ", and an answer of the service that names it changes nothing: what was charged first stays"
	}
	return note
}

// peek looks at the winners' counters: cost 0 takes nothing.
func (x *Explainer) peek(ctx context.Context, cost int64, matches []rule.Match, out *Explanation) {
	var l looks
	passes := true
	for i := range matches {
		m := &matches[i]
		out.Winners[i] = viewWinner(m, cost)
		w := &out.Winners[i]
		if m.MissingDeny {
			passes = passes && m.Rule.Shadow
			continue
		}
		if m.Rule.Unreadable != "" {
			w.Unreadable, w.OnStoreLoss = m.Rule.Unreadable, m.Rule.OnStoreLoss
			passes = passes && (m.Rule.Shadow || m.Rule.OnStoreLoss != rules.StoreLossClosed)
			continue
		}
		look := x.o.Counter(m, 0)
		l.add(i, look)
		w.Counter, w.Limit, w.Burst, w.Unlimited = look.Key, look.Limit, look.Burst, look.Unlimited
		if look.Wallet() {
			w.Limit = look.Granted
		}
	}
	l.addSooner(out.Winners)
	d, err := x.o.Store.Decide(ctx, l.counters)
	if err != nil {
		out.Trouble = err.Error()
		return
	}
	for n, i := range l.of {
		ok := out.Winners[i].show(&d.States[n], &l.counters[n])
		if !ok {
			l.deny(n, d.States, out.Winners[i].Cost)
			out.Winners[i].RetryAfter, _ = charge.Wait([]charge.Judgement{{State: d.States[n]}})
		}
		passes = passes && (ok || matches[i].Rule.Shadow)
	}
	out.WouldPass = &passes
	asked := make([]rule.Match, len(l.of))
	for n, i := range l.of {
		asked[n] = matches[i]
	}
	d.States = d.States[:len(l.of)]
	out.Status, out.RetryAfter = foretell(matches, asked, l.counters[:len(l.of)], d)
}
