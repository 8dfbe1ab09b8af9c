package charge

import (
	"cmp"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
)

// Judgement is what one counter answered.
type Judgement struct {
	Rule  *rule.Compiled
	State limit.State
	// Cost is what was charged, corrections included.
	Cost int64
	// Shared: by this gateway's share, and nothing is charged yet.
	Shared bool

	match     *rule.Match
	taken     bool  // the share was charged
	corrected int64 // the part of Cost that the service's answer added
	carries   bool  // what the period has from the last one is part of its totals
	refunded  bool
}

// entitled reports whether the counter's policy grants anything at all. An
// empty wallet is entitled to what it is topped up with.
func (j *Judgement) entitled() bool {
	return j.State.Unlimited || j.State.Limit > 0 || !j.Rule.Algorithm.Quota() || j.Rule.Prepaid
}

// charged reports whether the store charged the request to the counter.
func (j *Judgement) charged() bool { return j.State.Allowed && !j.Shared }

// correct takes over what the counter answered to a correction. What was allowed
// stays allowed, whatever is left now.
func (j *Judgement) correct(difference int64, after *limit.State) {
	if after.Broken {
		return
	}
	j.Cost += difference
	j.corrected += difference
	j.State = *after
	j.State.Allowed = true
}

// tighter orders judgements: those that deny first, among them 403 before 429
// and the longer wait first; then the fewest units left, then the later reset.
func tighter(a, b Judgement) int {
	switch {
	case a.State.Allowed != b.State.Allowed:
		return first(!a.State.Allowed)
	case a.State.Allowed && a.State.Unlimited != b.State.Unlimited:
		return first(!a.State.Unlimited)
	case a.State.Allowed:
		return cmp.Or(cmp.Compare(a.State.Remaining, b.State.Remaining), -cmp.Compare(a.State.Reset, b.State.Reset))
	case a.entitled() != b.entitled():
		return first(!a.entitled())
	case a.State.Never != b.State.Never:
		return first(a.State.Never)
	}
	return -cmp.Compare(a.State.RetryAfter, b.State.RetryAfter)
}

// first is the result of a comparison that a wins when it is true.
func first(a bool) int {
	if a {
		return -1
	}
	return 1
}
