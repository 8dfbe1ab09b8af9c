package rule

import (
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Unreachable is a rule that never wins, the one that always wins in its place,
// and what decides between the two, as Considered has it.
type Unreachable struct {
	Rule, By *Compiled
	Because  string
}

// competition is what rules have in common that match the same requests and
// compete for them.
type competition struct {
	group                    *group
	service, endpoint, value string
	form                     form
}

// FindUnreachable returns the rules that win no request, since another of the same
// subject, scope, metric and horizon goes before them and holds whenever they
// would; in the order of their ids. A rule that is off is neither. A rule that loses
// only some requests, to one of a narrower scope, is not returned.
func FindUnreachable(among []*Compiled) []Unreachable {
	rivals := map[competition][]*Compiled{}
	for _, c := range among {
		if !c.off {
			at := competition{c.group, c.Service, c.Endpoint, c.value, c.form}
			rivals[at] = append(rivals[at], c)
		}
	}
	var found []Unreachable
	for _, all := range rivals {
		slices.SortFunc(all, func(a, b *Compiled) int { order, _ := a.compare(b); return order })
		for i, c := range all {
			if first := slices.IndexFunc(all[:i], func(d *Compiled) bool { return d.holdsWhenever(c) }); first >= 0 {
				_, because := all[first].compare(c)
				found = append(found, Unreachable{c, all[first], because})
			}
		}
	}
	slices.SortFunc(found, func(a, b Unreachable) int { return strings.Compare(a.Rule.ID, b.Rule.ID) })
	return found
}

// holdsWhenever compares the times, and what becomes of requests without the
// identity, of two rules that compete.
func (c *Compiled) holdsWhenever(d *Compiled) bool {
	return c.from <= d.from && c.until >= d.until && (c.OnMissing != rules.MissingSkip || d.OnMissing == rules.MissingSkip)
}
