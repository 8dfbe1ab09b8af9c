package gateway

import (
	"log/slog"
	"net/http"
	"slices"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
)

// correct charges or gives back the difference between what the service says
// the request cost and what was charged when it was let pass. That happens
// before the event is recorded and the client is answered, so both tell the
// corrected numbers. It denies nothing. Rules with a cost of their own are not
// concerned.
func (g *gate) correct(x *exchange, h http.Header) {
	values := h[x.service.costHeader]
	if len(values) == 0 {
		return
	}
	delete(h, x.service.costHeader)
	cost, ok := parseCost(values[0])
	switch {
	case len(values) > 1 || !ok:
		g.metrics.corrections[correctionMalformed].Inc()
	case cost == x.cost:
	case len(x.uncounted) > 0:
		// Nothing is charged yet; when it is, it will be that.
		x.cost = cost
		g.metrics.corrections[correctionCharged].Inc()
	case x.verdict.degraded:
		// What could not be charged cannot be corrected.
		g.metrics.corrections[correctionLost].Inc()
	default:
		g.correctTo(x, cost)
	}
}

func (g *gate) correctTo(x *exchange, cost int64) {
	difference := cost - x.cost
	charged := x.charged()
	counters := make([]limit.Counter, 0, len(charged))
	for _, c := range charged {
		n := c.match.Counter(difference)
		n.Force, n.At = true, x.judgedAt
		counters = append(counters, n)
	}
	result := correctionCharged
	if difference < 0 {
		result = correctionRefunded
	}
	if len(counters) > 0 {
		d, err := g.ask(counters)
		if err != nil {
			// Charged or not is unknown after a time-out; the event tells of what
			// is known to be charged.
			g.metrics.corrections[correctionLost].Inc()
			g.complain.say(slog.LevelWarn, "cost of a request could not be corrected", "service", x.service.name, "units", difference, "error", err)
			return
		}
		for i, c := range charged {
			c.judgement.correct(difference, &d.States[i])
		}
		x.judgedAt = d.Now
		slices.SortStableFunc(x.judged, tighter)
	}
	x.cost = cost
	g.metrics.corrections[result].Inc()
}

// charged is a counter that the request's own cost was charged to.
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
			if at < 0 || !j.state.Allowed || hasOwnCost(&x.matches[at]) {
				continue
			}
			all = append(all, charged{j, &x.matches[at]})
		}
	}
	return all
}

// hasOwnCost: whatever the request costs, the rule charges the same.
func hasOwnCost(m *rule.Match) bool { return m.Cost(0) == m.Cost(1) }

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
