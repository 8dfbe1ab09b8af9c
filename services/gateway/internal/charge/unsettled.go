package charge

import (
	"sync/atomic"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// marked is the journal as far as Unsettled asks it: *journal.Journal.
type marked interface {
	Mark() uint64
	Settled(mark uint64) bool
}

// Unsettled knows whether the store has been charged what this gateway let pass
// while the store was away. Until then the store believes that more is left than
// there is, and rules with onStoreLoss local go on by their shares. It is safe
// for concurrent use; the zero value is settled.
type Unsettled struct {
	// Away says whether the breaker of the store is open.
	Away func() bool

	journal marked
	// quotas and rates are the ends of what passed in the journal: quotas may have
	// to wait for a restore while rates do not.
	quotas, rates atomic.Uint64
	earlier       uint64 // the end of what an earlier process left
}

// Begin takes over what an earlier process left in the journal.
func (u *Unsettled) Begin(journal marked, pending bool) {
	u.journal = journal
	if pending {
		u.earlier = journal.Mark()
		u.quotas.Store(u.earlier)
		u.rates.Store(u.earlier)
	}
}

// Begun reports whether the store has been charged what an earlier process left.
func (u *Unsettled) Begun() bool { return u.journal != nil && u.journal.Settled(u.earlier) }

func (u *Unsettled) markOf(r *rule.Compiled) *atomic.Uint64 {
	if r.Algorithm.Quota() {
		return &u.quotas
	}
	return &u.rates
}

// passed says that what the rule let pass in an outage is in the journal. What
// passes afterwards, until it is settled, is not waited for: it would never end.
func (u *Unsettled) passed(r *rule.Compiled) {
	if u.journal == nil || !byShare(r) {
		return
	}
	mark, to := u.markOf(r), u.journal.Mark()
	for now := mark.Load(); now < to && !mark.CompareAndSwap(now, to); now = mark.Load() {
	}
}

func byShare(r *rule.Compiled) bool { return r.OnStoreLoss == rules.StoreLossLocal }

// Holds reports whether a rule goes by its share though the store is there.
func (u *Unsettled) Holds(r *rule.Compiled) bool {
	return byShare(r) && !r.Shadow && r.Unreadable == "" &&
		u.journal != nil && !u.Away() && !u.journal.Settled(u.markOf(r).Load())
}
