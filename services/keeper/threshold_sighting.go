package keeper

import (
	"time"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// crossing is the charge that showed a threshold to be reached.
type crossing struct {
	consumed, refunded, forfeited int64
	at                            time.Time
	decision                      string
}

// glimpse is what was seen of one threshold in one arming, in the order of
// reading.
type glimpse struct {
	point
	// below: use was seen under it.
	below bool
	// edge is the first that reached it after use was seen below; level the
	// first that found it reached already.
	edge, level *crossing
}

// sighting is what was seen in one arming and is not in Postgres yet.
type sighting struct {
	arming
	metric   string
	limit    *int64
	glimpses []glimpse // the lowest threshold first
}

func newSighting(a arming, c *usage.Charge) *sighting {
	points := pointsOf(c)
	s := &sighting{arming: a, metric: c.Metric, limit: c.Limit, glimpses: make([]glimpse, len(points))}
	for i, p := range points {
		s.glimpses[i].point = p
	}
	return s
}

// see takes in a charge of the arming.
func (s *sighting) see(c *usage.Charge, at time.Time, decision string) {
	used := usedBy(c)
	before := used - c.Amount
	var crossed *crossing
	for i := range s.glimpses {
		g := &s.glimpses[i]
		if used >= g.at {
			if crossed == nil {
				crossed = &crossing{c.Consumed, c.Refunded, c.Forfeited, at, decision}
			}
			g.reach(crossed, before < g.at)
		}
		if used < g.at || before < g.at {
			g.below = true
		}
	}
}

func (g *glimpse) reach(c *crossing, fromBelow bool) {
	switch {
	case !fromBelow && !g.below:
		if g.level == nil {
			g.level = c
		}
	case g.edge == nil:
		g.edge = c
	}
}

// follow takes in what was seen after s, in the same arming.
func (s *sighting) follow(later *sighting) {
	for i := range s.glimpses {
		g, l := &s.glimpses[i], &later.glimpses[i]
		if l.level != nil {
			g.reach(l.level, false)
		}
		if l.edge != nil {
			g.reach(l.edge, true)
		}
		g.below = g.below || l.below
	}
}

// known is what Postgres says of one threshold of a counter.
type known struct {
	reached, armed bool // in this arming
	elsewhere      bool // reached under another limit
}

// verdict is what follows for it.
type verdict struct {
	announce *crossing
	arm      bool
	// covered: it is reached, was announced under another limit, and use has not
	// been below it since. It stays open.
	covered bool
}

// judge decides. A threshold found reached without having been seen below is
// announced unless another limit's arming already did: a limit that was lowered
// under what is used tells something new, one that was raised a little does not.
func (g *glimpse) judge(k known) verdict {
	switch {
	case k.reached:
		return verdict{}
	case g.level != nil && (k.armed || !k.elsewhere):
		return verdict{announce: g.level}
	case g.edge != nil:
		return verdict{announce: g.edge}
	case g.level != nil && !g.below:
		return verdict{covered: true}
	}
	return verdict{arm: k.elsewhere && !k.armed}
}
