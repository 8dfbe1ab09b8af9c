package rule

import (
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Match is a winner of a request: a rule, and whose counter it charges.
type Match struct {
	Rule *Compiled
	// MissingDeny says that the request lacks the identity and the rule denies
	// that (403); there is no counter.
	MissingDeny bool

	subject subjectParts
}

// Subject returns the value that is counted, such as acme, acme/u1 or
// payments GET /pay/{id}; "" is the counter shared by requests without the
// identity, acme/ the one shared within acme. It may allocate.
func (m *Match) Subject() string {
	s := m.subject
	switch m.Rule.group.kind {
	case kindUser, kindApplication:
		if s.owner == "" {
			return ""
		}
		return s.owner + "/" + s.name
	case kindAPIKey:
		return s.name
	case kindEndpoint:
		if s.owner == "" {
			return ""
		}
		return s.owner + " " + s.name
	}
	return s.owner
}

// CounterKey returns the counter's identity. It allocates for wildcards only.
func (m *Match) CounterKey() string {
	if m.Rule.exactKey != "" {
		return m.Rule.exactKey
	}
	return counterKey(m.Rule.group.kind, m.subject, m.Rule.keyTail)
}

// Cost returns what the rule charges for a request whose own cost is given.
func (m *Match) Cost(requestCost int64) int64 {
	if m.Rule.Rule.Cost != nil {
		return *m.Rule.Rule.Cost
	}
	return requestCost
}

// Counter returns the counter to charge. It must not be asked of MissingDeny.
func (m *Match) Counter(requestCost int64) limit.Counter {
	c := m.Rule
	n := limit.Counter{
		Key: m.CounterKey(), Algorithm: c.Algorithm, Unlimited: c.Unlimited,
		Window: c.Window, Calendar: c.Calendar, Cost: m.Cost(requestCost),
	}
	if c.Limit != nil && c.Limit.Limit != nil {
		n.Limit = *c.Limit.Limit
	}
	if c.Limit != nil && c.Limit.Burst != nil {
		n.Burst = *c.Limit.Burst
	}
	return n
}

// matcher is one Match call.
type matcher struct {
	req  *Request
	now  int64
	base int // where this call's results begin in dst
	dst  []Match
}

// consider lets one rule compete. missing says that the request lacks the
// identity the rule counts by.
func (m *matcher) consider(c *Compiled, s subjectParts, missing bool) {
	if m.now < c.from || m.now >= c.until || missing && c.OnMissing == rules.MissingSkip {
		return
	}
	if c.scopeRank < 2 && c.Scope.Service != m.req.Service {
		return
	}
	at := len(m.dst)
	for i := m.base; i < len(m.dst); i++ {
		if m.dst[i].Rule.group == c.group {
			if !c.moreSpecific(m.dst[i].Rule) {
				return
			}
			at = i
			break
		}
	}
	if c.scopeRank == 0 && !c.pattern.Matches(m.req.Method, m.req.Path) {
		return
	}
	won := Match{Rule: c, MissingDeny: missing && c.OnMissing == rules.MissingDeny, subject: s}
	if at == len(m.dst) {
		m.dst = append(m.dst, won)
	} else {
		m.dst[at] = won
	}
}

func (m *matcher) considerAll(list []*Compiled, s subjectParts, missing bool) {
	for _, c := range list {
		m.consider(c, s, missing)
	}
}

// liftHorizons lets unlimited rules without a limit win the horizons of their
// subject kind and metric: a rate they win is not counted at all, a monthly
// quota goes on being counted under them.
func (m *matcher) liftHorizons() {
	for i := m.base; i < len(m.dst); i++ {
		if m.dst[i].Rule.group.class != classAny {
			continue
		}
		lifter, kept, counted := m.dst[i], m.base, false
		for j := m.base; j < len(m.dst); j++ {
			o := m.dst[j]
			other := o.Rule.group
			if j != i && other.kind == lifter.Rule.group.kind && other.metric == lifter.Rule.group.metric {
				month := other.class == classRenewing && other.calendar == lifter.Rule.Calendar
				if lifter.Rule.moreSpecific(o.Rule) {
					continue
				}
				counted = counted || month
			}
			m.dst[kept] = o
			kept++
		}
		m.dst = m.dst[:kept]
		i = m.settleLifter(lifter.Rule, counted)
	}
}

// settleLifter drops a lifter whose monthly counter a more specific rule
// counts in already, and returns the index to go on after.
func (m *matcher) settleLifter(lifter *Compiled, counted bool) int {
	for i := m.base; i < len(m.dst); i++ {
		if m.dst[i].Rule != lifter {
			continue
		}
		if !counted {
			return i
		}
		m.dst = append(m.dst[:i], m.dst[i+1:]...)
		return i - 1
	}
	return len(m.dst)
}

// sort orders this call's results by group; they are few.
func (m *matcher) sort() {
	for i := m.base + 1; i < len(m.dst); i++ {
		for j := i; j > m.base && m.dst[j].Rule.group.before(&m.dst[j-1].Rule.group); j-- {
			m.dst[j], m.dst[j-1] = m.dst[j-1], m.dst[j]
		}
	}
}

func (g *group) before(h *group) bool {
	switch {
	case g.kind != h.kind:
		return g.kind < h.kind
	case g.metric != h.metric:
		return g.metric < h.metric
	case g.class != h.class:
		return g.class < h.class
	}
	return g.window < h.window
}
