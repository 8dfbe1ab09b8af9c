package rule

import (
	"math"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/libs/period"
)

// unitLength orders units by how long they are.
var unitLength = [...]uint8{
	period.UnitHour: 1, period.UnitDay: 2, period.UnitWeek: 3, period.UnitMonth: 4, period.UnitYear: 5, period.UnitNever: 6,
}

// Results of a rule that was considered.
const (
	ResultWon             = "won"
	ResultLost            = "lost"
	ResultLifted          = "lifted"
	ResultOff             = "off"
	ResultNotYetValid     = "not-yet-valid"
	ResultExpired         = "expired"
	ResultOtherService    = "other-service"
	ResultOtherPattern    = "other-pattern"
	ResultIdentityMissing = "identity-missing"
	// ResultUnreadable: it won, its counter is not known, and its OnStoreLoss
	// holds. Because says why.
	ResultUnreadable = "unreadable"
)

var results = [...]string{
	whyCovers: ResultWon, whyOff: ResultOff, whyEarly: ResultNotYetValid, whyLate: ResultExpired,
	whyService: ResultOtherService, whyPattern: ResultOtherPattern, whyMissing: ResultIdentityMissing,
}

// Considered is a rule about one of the request's subjects, and what became of it.
type Considered struct {
	Rule *Compiled
	// Subject is whose counter it would take, as Match.Subject.
	Subject string
	// Result is one of the Result constants.
	Result string
	// By is the rule that it lost to or that lifted it, and Because what told
	// the two apart, or why it is unreadable; nil and "" otherwise.
	By      *Compiled
	Because string
}

// Explanation is what Match does, step by step.
type Explanation struct {
	// Considered are all rules about the request's subjects, winners first, then
	// in the order of ids.
	Considered []Considered
	// Matches are what Match returns.
	Matches []Match
}

// Explain walks through all rules, so it takes some tens of milliseconds at a
// million, but no lock. It judges by the code that Match judges by.
func (ix *Index) Explain(req *Request) Explanation {
	m := matcher{req: req, now: req.Now.UnixMicro()}
	var (
		room candidates
		seen = map[string]int{}
		out  Explanation
		whys []why
	)
	subjects := room.list(req, math.MaxUint64)
	ix.table.Load().all(func(c *Compiled) bool {
		for i := range subjects {
			s := &subjects[i]
			if s.kind != c.group.kind || s.form != c.form || !c.covers(&s.subject) {
				continue
			}
			verdict := m.judge(c, s.missing)
			if verdict == whyCovers {
				m.compete(c, &s.subject, s.missing)
			}
			entry := Considered{Rule: c, Subject: s.subject.text(c.group.kind), Result: results[verdict]}
			if at, twice := seen[c.ID]; twice { // it was moved meanwhile, or has two places
				out.Considered[at], whys[at] = entry, verdict
				continue
			}
			seen[c.ID] = len(whys)
			out.Considered, whys = append(out.Considered, entry), append(whys, verdict)
		}
		return true
	})
	groups := append([]Match(nil), m.dst...)
	m.settle()
	ix.overrides.Load().apply(&m)
	out.Matches = m.dst
	for i := range out.Considered {
		if whys[i] == whyCovers {
			out.Considered[i].decide(groups, out.Matches)
		}
	}
	sortConsidered(out.Considered)
	return out
}

// decide says what became of a rule that covers the request: groups are the
// winners of all groups, and won those that were left.
func (e *Considered) decide(groups, won []Match) {
	for i := range won {
		if won[i].Rule != e.Rule {
			continue
		}
		if e.Rule.Unreadable != "" {
			e.Result, e.Because = ResultUnreadable, e.Rule.Unreadable
		}
		return
	}
	for i := range groups {
		first := groups[i].Rule
		if first.group == e.Rule.group && first != e.Rule {
			_, because := first.compare(e.Rule)
			e.Result, e.By, e.Because = ResultLost, first, because
			return
		}
	}
	// It won its group, but an unlimited rule stands for that horizon too, or,
	// being such a rule, its own month is counted by a more specific one.
	e.Result = ResultLifted
	for i := range groups {
		other := groups[i].Rule
		if other != e.Rule && other.group.liftedBy(e.Rule.group) && (other.group.class == classAny || e.Rule.group.class == classAny) && other.beats(e.Rule) {
			_, because := other.compare(e.Rule)
			e.By, e.Because = other, because
		}
	}
}

func sortConsidered(all []Considered) {
	slices.SortFunc(all, func(a, b Considered) int {
		if won := a.Result == ResultWon; won != (b.Result == ResultWon) {
			if won {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Rule.ID, b.Rule.ID)
	})
}
