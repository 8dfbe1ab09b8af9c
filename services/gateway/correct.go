package gateway

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
)

// correct charges or gives back the difference between what the service says
// the request cost and what was charged when it was let pass. That happens
// before the event is recorded and the client is answered, so both tell the
// corrected numbers. It denies nothing. Rules with a cost of their own are not
// concerned, nor those that gave back all they charged.
func (g *gate) correct(x *exchange, h http.Header) {
	values := h[x.service.CostHeader]
	if len(values) == 0 {
		return
	}
	delete(h, x.service.CostHeader)
	cost, ok := identify.ParseCost(values[0])
	switch {
	case len(values) > 1 || !ok:
		g.metrics.corrections[correctionMalformed].Inc()
	case cost == x.cost:
	case cost > max(x.service.MaxCost, x.cost):
		// To charge all of it could shut the customer out for years, and part of
		// it would be as wrong: what the catalog says is all that is known.
		g.metrics.corrections[correctionTooLarge].Inc()
		g.complain.Say(slog.LevelWarn, "a service names a cost above its maxCost; the first charge stays", "service", x.service.Name, "cost", cost, "maxCost", x.service.MaxCost)
	default:
		g.correctTo(x, cost)
	}
}

func (g *gate) correctTo(x *exchange, cost int64) {
	difference := cost - x.cost
	result := correctionCharged
	if difference < 0 {
		result = correctionRefunded
	}
	switch err := g.correctCharged(x, difference); {
	case errors.Is(err, limit.ErrUnavailable):
		result = correctionOwed
	case err != nil:
		g.metrics.corrections[correctionLost].Inc()
		g.complain.Say(slog.LevelError, "cost of a request could not be corrected", "service", x.service.Name, "units", difference, "error", err)
		return
	}
	// What passed uncounted is in the journal with its first cost.
	g.oweUnits(x, x.uncounted, difference, x.correctable)
	x.cost = cost
	g.metrics.corrections[result].Inc()
}

// correctCharged corrects the counters that were charged at once. While they
// cannot be reached the difference is owed: the store sees to it that a call it
// gave up charges nothing.
func (g *gate) correctCharged(x *exchange, difference int64) error {
	charged := slices.DeleteFunc(x.charged(), func(c charged) bool { return !x.correctable(c.match) })
	if len(charged) == 0 {
		return nil
	}
	counters := make([]limit.Counter, 0, len(charged))
	for _, c := range charged {
		n := g.counter(c.match, difference)
		n.Force, n.At = true, x.judgedAt
		counters = append(counters, n)
	}
	d, err := g.ask(counters)
	if errors.Is(err, limit.ErrUnavailable) {
		g.debts.Append(x.judgedAt, counters)
		for i, c := range charged {
			if counters[i].Algorithm.Quota() {
				x.charges = append(x.charges, pendingCharge(c.match.Rule.Metric, &counters[i], x.judgedAt))
			}
		}
	}
	if err != nil {
		return err
	}
	for i, c := range charged {
		c.judgement.correct(difference, &d.States[i])
	}
	x.judgedAt = d.Now
	slices.SortStableFunc(x.judged, tighter)
	return nil
}

// charged is a counter that the request was charged to at once.
type charged struct {
	judgement *judgement
	match     *rule.Match
}

func (x *exchange) charged() []charged {
	all := make([]charged, 0, len(x.judged)+len(x.shadows))
	for _, judged := range [...][]judgement{x.judged, x.shadows} {
		for i := range judged {
			j := &judged[i]
			at := slices.IndexFunc(x.matches, func(m rule.Match) bool { return m.Rule == j.rule })
			if at < 0 || j.shared || !j.state.Allowed {
				continue
			}
			all = append(all, charged{j, &x.matches[at]})
		}
	}
	return all
}

// correctable: the rule charges what the request costs, not the same whatever
// that is, and has not given it back.
func (x *exchange) correctable(m *rule.Match) bool {
	return m.Cost(0) != m.Cost(1) && !x.held.gaveBack(m.Rule)
}

// correct takes over what the counter says after a correction. What was
// allowed stays allowed, whatever is left now.
func (j *judgement) correct(difference int64, after *limit.State) {
	if after.Broken {
		return
	}
	j.cost += difference
	j.corrected += difference
	j.state = *after
	j.state.Allowed = true
}
