package rule

import (
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Outdone is a rule that never wins, the one that always stands before it, and
// what tells the two apart, as Considered has it.
type Outdone struct {
	Rule, By *Compiled
	Because  string
}

// standing is what rules have in common that cover the same requests and compete
// for them.
type standing struct {
	group                    *group
	service, endpoint, value string
	form                     form
}

// FindOutdone returns the rules that win no request, since another of the same
// subject, scope, metric and horizon goes before them and holds whenever they
// would; in the order of their ids. A rule that is off is neither. Those that
// only some requests keep from winning, by a narrower scope, are not told.
func FindOutdone(among []*Compiled) []Outdone {
	rivals := map[standing][]*Compiled{}
	for _, c := range among {
		if !c.off {
			at := standing{c.group, c.Service, c.Endpoint, c.value, c.form}
			rivals[at] = append(rivals[at], c)
		}
	}
	var found []Outdone
	for _, all := range rivals {
		slices.SortFunc(all, func(a, b *Compiled) int { order, _ := a.compare(b); return order })
		for i, c := range all {
			if first := slices.IndexFunc(all[:i], func(d *Compiled) bool { return d.holdsWhenever(c) }); first >= 0 {
				_, because := all[first].compare(c)
				found = append(found, Outdone{c, all[first], because})
			}
		}
	}
	slices.SortFunc(found, func(a, b Outdone) int { return strings.Compare(a.Rule.ID, b.Rule.ID) })
	return found
}

// holdsWhenever compares the times, and what becomes of requests without the
// identity, of two rules of one standing.
func (c *Compiled) holdsWhenever(d *Compiled) bool {
	return c.from <= d.from && c.until >= d.until && (c.OnMissing != rules.MissingSkip || d.OnMissing == rules.MissingSkip)
}
