package rule

// settle turns the winners of groups into the results: unlimited rules lift
// what they stand above, and the rest gets its order.
func (m *matcher) settle() {
	if m.lifts {
		m.liftHorizons()
	}
	m.sort()
}

// liftHorizons lets unlimited rules without a limit win the horizons of their
// subject kind and metric: a rate they win is not counted at all, a monthly
// quota goes on being counted under them.
func (m *matcher) liftHorizons() {
	for i := m.base; i < len(m.dst); i++ {
		if m.dst[i].Rule.group.class != classAny {
			continue
		}
		lifter, kept, counted := m.dst[i].Rule, m.base, false
		for j := m.base; j < len(m.dst); j++ {
			o := m.dst[j]
			if j != i && o.Rule.group.liftedBy(lifter.group) {
				if lifter.beats(o.Rule) {
					continue
				}
				counted = counted || o.Rule.group.class == classQuota && o.Rule.group.unit == lifter.Calendar.Unit()
			}
			m.dst[kept] = o
			kept++
		}
		m.dst = m.dst[:kept]
		i = m.settleLifter(lifter, counted)
	}
}

// liftedBy reports whether h, of an unlimited rule without a limit, stands for
// g's horizon too.
func (g *group) liftedBy(h *group) bool {
	return g.kind == h.kind && g.metric == h.metric && g.shadow == h.shadow
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
		for j := i; j > m.base && m.dst[j].Rule.group.before(m.dst[j-1].Rule.group); j-- {
			m.dst[j], m.dst[j-1] = m.dst[j-1], m.dst[j]
		}
	}
}

// before is the order of results: enforced before shadow, then kind, metric,
// rates before quotas, and short horizons before long ones.
func (g *group) before(h *group) bool {
	switch {
	case g.shadow != h.shadow:
		return h.shadow
	case g.kind != h.kind:
		return g.kind < h.kind
	case g.metric != h.metric:
		return g.metric < h.metric
	case g.class != h.class:
		return g.class < h.class
	case g.window != h.window:
		return g.window < h.window
	}
	return unitLength[g.unit] < unitLength[h.unit]
}
