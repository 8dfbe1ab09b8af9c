package rule

import (
	"maps"
	"slices"
	"time"
)

// TenantQuotas returns what counts a tenant's quotas at now: of each counter one
// Match, that of the rule which holds in the widest scope, as it says what the
// tenant has in all; in the order of their counters. Rules that win no request
// of the tenant are left aside, as are rules and overrides of others, of other
// kinds and of modes off and shadow, so that all may hold those of several
// tenants, and of any ("*").
func TenantQuotas(tenant string, all []*Compiled, overrides []*CompiledOverride, now time.Time) []Match {
	at := now.UnixMicro()
	subject := subjectParts{owner: tenant}
	won := tenantWinners{}
	for _, c := range all {
		if c.group.kind == kindTenant && c.Algorithm.Quota() && !c.Shadow && !c.off && at >= c.from && at < c.until && c.covers(&subject) {
			won.compete(c)
		}
	}
	won.lift()
	byCounter := map[string]Match{}
	for _, c := range won {
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

// contest is what rules of one tenant compete for whatever the request: a group
// within a scope. A rule of a narrower scope wins some requests only.
type contest struct {
	group             group
	service, endpoint string
}

// tenantWinners are the winners of a tenant's contests. Whoever loses there loses
// each request it covers, as who beats it covers the same.
type tenantWinners map[contest]*Compiled

func (w tenantWinners) compete(c *Compiled) {
	at := contest{*c.group, c.Service, c.Endpoint}
	if first := w[at]; first == nil || c.beats(first) {
		w[at] = c
	}
}

// lift leaves aside what matcher.liftHorizons does: the winners that an unlimited
// rule without a limit lifts, and such a rule where one that beats it counts in
// its period already.
func (w tenantWinners) lift() {
	for at, lifter := range maps.Clone(w) {
		if at.group.class != classAny {
			continue
		}
		for other, c := range w {
			switch {
			case c == lifter || other.service != at.service || other.endpoint != at.endpoint || !c.group.liftedBy(lifter.group):
			case lifter.beats(c):
				delete(w, other)
			case other.group.class == classQuota && other.group.unit == lifter.Calendar.Unit():
				delete(w, at)
			}
		}
	}
}

// wider is the order of rules by how much of a tenant's use they are about, and
// among equals the one that Match has.
func (c *Compiled) wider(d *Compiled) bool {
	if c.scopeRank != d.scopeRank {
		return c.scopeRank > d.scopeRank
	}
	return c.beats(d)
}
