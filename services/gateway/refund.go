package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/settle"
)

// refundable is what rules with refundOn charged a request, or will.
type refundable struct {
	// hold has what was charged at once on disk, from before it was.
	hold settle.Hold
	// rules are gathered when the call's end is known.
	rules []refund
	ended bool
	// cost is what the request cost when it was forwarded.
	cost int64
}

// refund is one rule's charge.
type refund struct {
	rule    *rule.Compiled
	counter limit.Counter // as it was charged
	// uncounted: it is not charged before the call has ended well.
	uncounted bool
	back      bool
}

// emptied keeps the capacity only.
func (h *refundable) emptied() refundable { return refundable{rules: h.rules[:0]} }

// gaveBack reports whether what the rule charged was given back.
func (h *refundable) gaveBack(r *rule.Compiled) bool {
	for i := range h.rules {
		if h.rules[i].rule == r {
			return h.rules[i].back
		}
	}
	return false
}

func (h *refundable) add(r *rule.Compiled, c limit.Counter, at time.Time, uncounted bool) {
	if c.Cost > 0 {
		c.At = at
		h.rules = append(h.rules, refund{rule: r, counter: c, uncounted: uncounted})
	}
}

// charge asks for what a request is charged. What rules with refundOn take is on
// disk before: if this process dies before the call's end is known, the client
// gets no answer, and the next start gives back what was charged.
func (g *gate) charge(x *exchange, matches []rule.Match, counters []limit.Counter) (d limit.Decision, err error) {
	var back uint64
	for i := range min(len(matches), limit.MaxNoted) {
		// What is only tried stays charged after a kill: nobody pays for it.
		if c := &counters[i]; matches[i].Rule.RefundOn != nil && c.Cost > 0 && !c.Apart() {
			back |= 1 << i
		}
	}
	if back == 0 {
		return g.ask(counters)
	}
	d, x.held.hold, err = g.debts.Decide(context.Background(), counters, back)
	return d, err
}

// conclude says what becomes of the charges of rules with refundOn when the
// call's end is known: where the rule names such a failure they are given back,
// else they stand, or are owed from now on. It comes before the cost's
// correction, which is then about the rest alone, and before the event.
func (g *gate) conclude(x *exchange, status int, how rule.Failure) {
	h := &x.held
	if h.ended || x.reservation != "" || x.verdict.status != 0 {
		return
	}
	h.ended = true
	g.gather(x)
	var back, owed []limit.Counter
	failed := false
	for i := range h.rules {
		r := &h.rules[i]
		r.back = r.rule.RefundOn.Has(status, how)
		failed = failed || r.back
		c := r.counter
		switch c.Cost = -c.Cost; {
		case !r.back && r.uncounted:
			owed = append(owed, r.counter)
		case r.back && !r.uncounted:
			back = append(back, c)
		}
		if r.back && c.Algorithm.Quota() {
			tells := pendingCharge(r.rule.Metric, &c, c.At)
			tells.Refund = true
			x.charges = append(x.charges, tells)
		}
	}
	if len(owed) > 0 {
		g.debts.Append(x.start, owed)
		g.inJournal(x, x.uncounted)
	}
	if len(back) > 0 {
		g.debts.GiveBack(h.hold, x.judgedAt, back)
	} else {
		g.debts.Keep(h.hold)
	}
	if failed {
		g.metrics.refunds.Inc()
	}
}

// gather finds what rules with refundOn have charged, or will.
func (g *gate) gather(x *exchange) {
	gives := func(m rule.Match) bool { return m.Rule.RefundOn != nil }
	h := &x.held
	h.cost = x.cost
	if slices.ContainsFunc(x.matches, gives) {
		for _, c := range x.charged() {
			if gives(*c.match) {
				h.add(c.match.Rule, g.counter(c.match, x.cost), x.judgedAt, false)
			}
		}
	}
	for i := range x.uncounted {
		m := &x.uncounted[i]
		if !gives(*m) {
			continue
		}
		if c := g.counter(m, x.cost); !c.Apart() { // as oweUnits, which owes the others
			h.add(m.Rule, c, x.start, true)
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
