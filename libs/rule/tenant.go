package rule

import (
	"maps"
	"slices"
	"time"
)

// TenantQuotas returns what counts a tenant's quotas at now: of each counter one
// Match, that of the rule which holds in the widest scope, as it says what the
// tenant has in all; in the order of their counters. Rules and overrides of
// others, of other kinds and of modes off and shadow are left aside, so that
// all may hold those of several tenants, and of any ("*").
func TenantQuotas(tenant string, all []*Compiled, overrides []*CompiledOverride, now time.Time) []Match {
	at := now.UnixMicro()
	subject := subjectParts{owner: tenant}
	byCounter := map[string]Match{}
	for _, c := range all {
		if c.group.kind != kindTenant || !c.Algorithm.Quota() || c.Shadow || c.off || at < c.from || at >= c.until || !c.covers(&subject) {
			continue
		}
		m := Match{Rule: c, subject: subject}
		n := m.Counter(0)
		if n.Renews() {
			n.Key += ":" + n.Calendar.At(now).Name()
		}
		if best, taken := byCounter[n.Key]; !taken || c.wider(best.Rule) {
			byCounter[n.Key] = m
		}
	}
	var found []Match
	for _, key := range slices.Sorted(maps.Keys(byCounter)) {
		m := byCounter[key]
		for _, o := range overrides {
			if o.kind == kindTenant && o.metric == m.Rule.Metric && at < o.until && o.isFor(subject) {
				if holds, named := o.holdsFor(m.Rule.group); holds && (named || m.Override == nil) {
					m.Override = o
				}
			}
		}
		found = append(found, m)
	}
	return found
}

// wider is the order of rules by how much of a tenant's use they are about, and
// among equals the one that Match has.
func (c *Compiled) wider(d *Compiled) bool {
	if c.scopeRank != d.scopeRank {
		return c.scopeRank > d.scopeRank
	}
	return c.beats(d)
}
