package rule

import (
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Match is a winner of a request: a rule, and whose counter it charges.
type Match struct {
	Rule *Compiled
	// Override is whose numbers hold in place of the rule's, nil for the rule's.
	Override *CompiledOverride
	// Missing says that the request lacks the identity: the counter is one that
	// such requests share, or, with MissingDeny, there is none.
	Missing bool
	// MissingDeny says that the request lacks the identity and the rule denies
	// that (403).
	MissingDeny bool

	subject subjectParts
}

// Subject returns the value that is counted, such as acme, acme/u1 or
// payments GET /pay/{id}; "" is the counter shared by requests without the
// identity, acme/ the one shared within acme. It may allocate.
func (m *Match) Subject() string { return m.subject.text(m.Rule.group.kind) }

func (s subjectParts) text(k kind) string {
	switch k {
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

// CounterKey returns the counter's identity. It allocates where more than one
// subject's counters follow from the rule.
func (m *Match) CounterKey() string {
	if m.Rule.exactKey != "" {
		return m.Rule.exactKey
	}
	return counterKey(m.Rule.group.kind, m.subject, m.Rule.keyTail)
}

// Cost returns what the rule charges for a request whose own cost is given.
func (m *Match) Cost(requestCost int64) int64 {
	if m.Rule.cost != ownCost {
		return m.Rule.cost
	}
	return requestCost
}

// GrantsNothing reports a quota of 0, which no counter can change. An empty
// wallet is none: a top-up fills it.
func (m *Match) GrantsNothing() bool {
	n, _, unlimited := m.numbers()
	return m.Rule.Algorithm.Quota() && !m.Rule.Prepaid && !unlimited && n == 0
}

// numbers are the override's where there is one, else the rule's.
func (m *Match) numbers() (n, burst int64, unlimited bool) {
	if m.Override != nil {
		return m.Override.apply(m.Rule)
	}
	return m.Rule.Limit, m.Rule.Burst, m.Rule.Unlimited
}

// Wallet returns whose wallet a prepaid rule charges: the tenant, "" for a
// request without one, and the metric. It does not allocate.
func (m *Match) Wallet() (tenant, metric string) { return m.subject.owner, m.Rule.Metric }

// Counter returns the counter to charge. It must not be asked of MissingDeny,
// nor of a rule that is Unreadable. Of a prepaid one the caller fills in what
// was granted.
func (m *Match) Counter(requestCost int64) limit.Counter {
	c := m.Rule
	n := limit.Counter{
		Key: m.CounterKey(), Algorithm: c.Algorithm, Window: c.Window, Calendar: c.Calendar,
		Cost: m.Cost(requestCost), Shadow: c.Shadow, Prepaid: c.Prepaid,
	}
	n.Limit, n.Burst, n.Unlimited = m.numbers()
	if c.rollover != nil && !n.Unlimited {
		// An override of the limit must not take the sum past what is exact.
		n.Rollover, n.Since = min(c.rollover.most, limit.MaxInteger-n.Limit), c.rollover.since
	}
	return n
}

// matcher is one Match call.
type matcher struct {
	req  *Request
	now  int64
	base int // where this call's results begin in dst
	dst  []Match
	// groups are the first results', near at hand; lifts is true where one
	// result lifts others.
	groups [16]*group
	lifts  bool
}

func (m *matcher) groupAt(i int) *group {
	if i < len(m.groups) {
		return m.groups[i]
	}
	return m.dst[m.base+i].Rule.group
}

// why says whether a rule covers a request, and if not, what is against it.
type why uint8

const (
	whyCovers why = iota
	whyOff
	whyEarly
	whyLate
	whyService
	whyPattern
	whyMissing
)

// judge says whether a rule about one of the request's subjects covers it.
// Match and Explain both ask it, and so cannot disagree.
func (m *matcher) judge(c *Compiled, missing bool) why {
	switch {
	case c.off:
		return whyOff
	case m.now < c.from:
		return whyEarly
	case m.now >= c.until:
		return whyLate
	case c.scopeRank != scopeGlobal && c.Service != m.req.Service:
		return whyService
	case missing && c.OnMissing == rules.MissingSkip:
		return whyMissing
	case c.scopeRank == scopeEndpoint && !c.pattern.Matches(m.req.Method, m.req.Path):
		return whyPattern
	}
	return whyCovers
}

// compete lets a rule that covers the request win its group, or lose.
func (m *matcher) compete(c *Compiled, s *subjectParts, missing bool) {
	g, n := c.group, len(m.dst)-m.base
	at := 0
	for at < n && m.groupAt(at) != g {
		at++
	}
	if at == n {
		if n < len(m.groups) {
			m.groups[n] = g
		}
		m.dst = append(m.dst, Match{})
		m.lifts = m.lifts || g.class == classAny
	} else if first := m.dst[m.base+at].Rule; first.ID != c.ID && !c.beats(first) {
		return // one rule may come twice while it is moved; the later is the newer
	}
	won := &m.dst[m.base+at]
	won.Rule, won.Override, won.Missing, won.subject = c, nil, missing, *s
	won.MissingDeny = missing && c.OnMissing == rules.MissingDeny
}

// reset forgets the results, to search again.
func (m *matcher) reset() {
	m.dst, m.lifts = m.dst[:m.base], false
}

// search lets every rule of the table that covers the request compete.
func (t *table) search(m *matcher) {
	var found candidates
	present := t.present.Load()
	all := found.list(m.req, present)
	service, patterns := hashOf(m.req.Service), false
	for i := range all {
		c := &all[i]
		bits := c.sets(present)
		if bits>>scopeGlobal&1 != 0 {
			t.probe(m, c, scopeGlobal, placed(c.hash, 0, 0))
		}
		if bits>>scopeService&1 != 0 {
			t.probe(m, c, scopeService, placed(c.hash, service, 0))
		}
		patterns = patterns || bits>>scopeEndpoint&1 != 0
	}
	if patterns {
		t.searchPatterns(m, all, service, present)
	}
}

// searchPatterns tries each shape that patterns of the service have, not each
// pattern.
func (t *table) searchPatterns(m *matcher, all []candidate, service, present uint64) {
	s := (*t.shapes.Load())[m.req.Service]
	if s == nil {
		return
	}
	var path route.PathHash
	route.HashPath(m.req.Path, &path)
	for _, shape := range *s.list.Load() {
		pattern, ok := shape.Hash(&path)
		if !ok {
			continue
		}
		for i := range all {
			if c := &all[i]; c.sets(present)>>scopeEndpoint&1 != 0 {
				t.probe(m, c, scopeEndpoint, placed(c.hash, service, pattern))
			}
		}
	}
}

func (t *table) probe(m *matcher, c *candidate, scope scopeRank, hash uint64) {
	w := t.sets[setOf(c.kind, c.form, scope)].Load().find(hash)
	for r := w.next(); r != nil; r = w.next() {
		if (c.form == formAny || r.covers(&c.subject)) && m.judge(r, c.missing) == whyCovers {
			m.compete(r, &c.subject, c.missing)
		}
	}
}
