package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/settle"
)

// refundable is what a request in flight was charged by rules with refundOn.
type refundable struct {
	// counters have costs below 0; rules has the rule of each.
	counters []limit.Counter
	rules    []*rule.Compiled
	hold     settle.Hold
	// keep are the places of counters that are not given back, a bit each; it
	// means something once ended is set.
	keep  uint64
	ended bool
	// cost is what the request cost when it was forwarded.
	cost int64
}

// emptied keeps the capacity only.
func (h *refundable) emptied() refundable {
	return refundable{counters: h.counters[:0], rules: h.rules[:0]}
}

// maxHeld is how many counters have a bit in keep; what is beyond is not given
// back. No request matches nearly as many rules.
const maxHeld = 64

func (h *refundable) add(r *rule.Compiled, c limit.Counter, at time.Time) {
	if c.Cost > 0 && len(h.counters) < maxHeld {
		c.Cost, c.At = -c.Cost, at
		h.counters, h.rules = append(h.counters, c), append(h.rules, r)
	}
}

// gaveBack reports whether what the rule charged was given back.
func (h *refundable) gaveBack(r *rule.Compiled) bool {
	for i := range h.rules {
		if h.rules[i] == r {
			return h.ended && h.keep>>i&1 == 0
		}
	}
	return false
}

// hold notes what rules with refundOn have charged, or will, before the request
// is forwarded: if this process dies while it is in flight, the client gets no
// answer and the next start gives it back.
func (g *gate) hold(x *exchange) {
	h := &x.held
	h.cost = x.cost
	for _, c := range x.charged() {
		if c.match.Rule.RefundOn != nil {
			h.add(c.match.Rule, g.counter(c.match, x.cost), x.judgedAt)
		}
	}
	for i := range x.uncounted {
		m := &x.uncounted[i]
		if m.Rule.RefundOn == nil {
			continue
		}
		if c := g.counter(m, x.cost); !c.Apart() { // as oweUnits, which owes it
			h.add(m.Rule, c, x.start)
		}
	}
	if len(h.counters) > 0 {
		h.hold = g.debts.Hold(x.start, h.counters)
	}
}

// conclude ends the hold when the call's end is known: what the rules charged
// that name such a failure is given back, the rest stands. It comes before the
// cost's correction, which is then about the rest alone, and before the event.
func (g *gate) conclude(x *exchange, status int, how rule.Failure) {
	h := &x.held
	if len(h.counters) == 0 || h.ended {
		return
	}
	h.ended = true
	for i, r := range h.rules {
		if !r.RefundOn.Has(status, how) {
			h.keep |= 1 << i
		}
	}
	if h.keep == 1<<len(h.rules)-1 {
		g.debts.Keep(h.hold)
		return
	}
	g.debts.GiveBack(h.hold, h.keep)
	g.metrics.refunds.Inc()
	for i, r := range h.rules {
		if c := &h.counters[i]; h.keep>>i&1 == 0 && c.Algorithm.Quota() {
			back := pendingCharge(r.Metric, c, c.At)
			back.Refund = true
			x.charges = append(x.charges, back)
		}
	}
}

// costOf is what a rule that let the request pass uncounted charges for.
func (x *exchange) costOf(r *rule.Compiled) int64 {
	if x.held.gaveBack(r) {
		return x.held.cost
	}
	return x.cost
}

// howItFailed is the failure behind the gate's own answer to a round trip that
// failed. A client that went away, sent a broken body or wanted nothing but a
// stored answer has itself to blame: its status (499, 400, 504) is nobody's
// answer and gives nothing back.
func howItFailed(ctx context.Context, err error, status int) rule.Failure {
	switch {
	case errors.Is(context.Cause(ctx), errCut):
		return rule.Abandoned
	case errors.Is(err, errOnlyIfCached): // a 504, and yet no service was asked
		return rule.ClientsFault
	case status == http.StatusGatewayTimeout:
		return rule.TimedOut
	case status == http.StatusBadGateway:
		return rule.Unanswered
	}
	return rule.ClientsFault
}
