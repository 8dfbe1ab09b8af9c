package charge

import (
	"context"
	"errors"
	"log/slog"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
)

// set is rules and what they charge, side by side.
type set struct {
	matches  []rule.Match
	counters []limit.Counter
}

// split divides a set in two without changing it.
func (s set) split(by func(i int) bool) (those, others set) {
	for i := range s.matches {
		to := &others
		if by(i) {
			to = &those
		}
		to.matches, to.counters = append(to.matches, s.matches[i]), append(to.counters, s.counters[i])
	}
	return those, others
}

// count charges the counters, or falls back to the rules' onStoreLoss. Rules that
// go by their shares until the journal is settled are judged first.
func (c *Charger) count(q *Charges) {
	all := set{q.Matches, q.Counters}
	if q.Held() {
		held, others := all.split(func(i int) bool { return c.Unsettled.Holds(all.matches[i].Rule) })
		if all = others; !c.passUncounted(q, held, LossOfStore) {
			return
		}
	}
	c.askStore(q, all, true)
}

// passUncounted lets rules say what the loss of their counters means, and
// remembers that these are still to be charged.
func (c *Charger) passUncounted(q *Charges, lost set, why *Loss) bool {
	if !c.fallBack(q, lost.matches, why) {
		return false
	}
	for _, m := range lost.matches {
		q.uncounted = append(q.uncounted, uncounted{match: m})
	}
	return true
}

// askStore charges counters. Where some cannot be charged, their rules say what
// that means, and the others are charged without them: once, then all are lost.
func (c *Charger) askStore(q *Charges, s set, again bool) {
	if len(s.matches) == 0 {
		return
	}
	d, err := c.charge(q, s)
	switch {
	case err == nil:
		c.observe(s, &d)
		q.Judge(s.matches, s.counters, d)
	case again && errors.Is(err, limit.ErrCounterBroken):
		c.askWithoutBroken(q, s)
	case again && errors.Is(err, limit.ErrRestoring):
		q.outage = true
		c.Complain.Say(slog.LevelWarn, "quotas are being restored; their rules' onStoreLoss holds", "error", err)
		quotas, rates := s.split(func(i int) bool { return s.matches[i].Rule.Algorithm.Quota() })
		if c.passUncounted(q, quotas, LossOfQuotas) {
			c.askStore(q, rates, false)
		}
	default:
		c.storeLost(q, s, err)
	}
}

// charge charges a request. What rules with refundOn took is in the journal before the
// request is forwarded: the next start gives it back where this process is killed. A
// client that goes away does not cut the call short: its charge would be in no event.
func (c *Charger) charge(q *Charges, s set) (limit.Decision, error) {
	d, err := c.Store.Decide(context.Background(), s.counters)
	if err != nil || !d.Allowed {
		return d, err
	}
	var back []limit.Counter
	for i := range s.matches {
		// A shadow rule's stays charged after a kill: nobody pays for it.
		if n := &s.counters[i]; s.matches[i].Rule.RefundOn != nil && n.Cost > 0 && !n.Apart() {
			back = append(back, *n)
		}
	}
	if len(back) > 0 {
		q.inFlight = c.Journal.Begin(d.Now, back)
	}
	return d, nil
}

// observe remembers what was left of the counters whose rules are local.
func (c *Charger) observe(s set, d *limit.Decision) {
	for i := range s.matches {
		if byShare(s.matches[i].Rule) {
			c.Shares.Observe(&s.counters[i], &d.States[i])
		}
	}
}

// askWithoutBroken looks at each counter alone (cost 0 takes nothing), lets the
// rules of the broken ones say what their loss means, and charges the rest. This
// is rare and slow; a key of the wrong type means that somebody else writes into
// the counters.
//
// What a broken counter lets pass is not journaled: the journal is for a store that
// comes back by itself, and would find the key as broken as it is now. The
// event, the log and a metric report it; deleting the key mends the counter.
func (c *Charger) askWithoutBroken(q *Charges, s set) {
	bad := make([]bool, len(s.counters))
	for i := range s.counters {
		look := s.counters[i]
		look.Cost = 0
		_, err := c.Store.Decide(context.Background(), []limit.Counter{look})
		switch bad[i] = errors.Is(err, limit.ErrCounterBroken); {
		case bad[i]:
			c.Metrics.Broken.Inc()
			c.Complain.Say(slog.LevelError, "counter is broken; its rule's onStoreLoss holds", "rule", s.matches[i].Rule.ID, "error", err)
		case err != nil:
			c.storeLost(q, s, err)
			return
		}
	}
	broken, whole := s.split(func(i int) bool { return bad[i] })
	if c.fallBack(q, broken.matches, LossOfCounter) {
		c.askStore(q, whole, false)
	}
}

// storeLost is the verdict when the store could not charge some rules.
func (c *Charger) storeLost(q *Charges, lost set, err error) {
	level := slog.LevelWarn
	if !errors.Is(err, limit.ErrUnavailable) {
		level = slog.LevelError // not an outage but a bug or a foreign key
	}
	c.Complain.Say(level, "counters could not be charged; the rules' onStoreLoss holds", "error", err)
	q.outage = true
	c.passUncounted(q, lost, LossOfStore)
}
