package rule

import (
	"cmp"
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
	byCounter := map[string]*Compiled{}
	for _, c := range all {
		if c.group.kind != kindTenant || !c.Algorithm.Quota() || c.Shadow || c.off || at < c.from || at >= c.until || !c.covers(&subject) {
			continue
		}
		counter := c.keyTail + ":" + c.Calendar.At(now).Name()
		if best := byCounter[counter]; best == nil || c.wider(best) {
			byCounter[counter] = c
		}
	}
	var found []Match
	for _, c := range byCounter {
		m := Match{Rule: c, subject: subject}
		for _, o := range overrides {
			if o.kind == kindTenant && o.metric == c.Metric && at < o.until && o.isFor(subject) {
				if holds, named := o.holdsFor(c.group); holds && (named || m.Override == nil) {
					m.Override = o
				}
			}
		}
		found = append(found, m)
	}
	slices.SortFunc(found, func(a, b Match) int {
		return cmp.Or(cmp.Compare(a.Rule.keyTail, b.Rule.keyTail), cmp.Compare(a.Rule.Calendar.String(), b.Rule.Calendar.String()))
	})
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
