package charge

import (
	"slices"

	"github.com/sluice-platform/sluice/libs/rule"
)

// Begin charges the request and comes to a verdict. What passes uncounted is in the
// journal when it returns: whatever dies from then on, it is charged.
func (q *Charges) Begin() {
	if len(q.Matches) > 0 && q.Prepare() {
		if q.by.count(q); q.Verdict.Status != 0 {
			q.by.giveBack(q)
		} else {
			q.by.owe(q, q.Cost, func(u *uncounted) bool { return u.match.Rule.RefundOn == nil })
		}
	}
	q.JudgeShadows()
}

// Prepare settles what needs no counter, and makes the counters of the other
// rules. It reports whether the request may still pass.
func (q *Charges) Prepare() bool {
	if q.DenyMissing() {
		return false
	}
	q.setAsideMissing()
	unreadable := func(m rule.Match) bool { return m.Rule.Unreadable != "" }
	if slices.ContainsFunc(q.Matches, unreadable) {
		lost := slices.DeleteFunc(slices.Clone(q.Matches), func(m rule.Match) bool { return !unreadable(m) })
		if !q.by.fallBack(q, lost, LossOfRule) { // what it lets pass is not journaled: nobody knows to what counter
			return false
		}
		q.Matches = slices.DeleteFunc(q.Matches, unreadable)
	}
	for i := range q.Matches {
		q.Counters = append(q.Counters, q.by.Counter(&q.Matches[i], q.Cost))
	}
	return true
}
