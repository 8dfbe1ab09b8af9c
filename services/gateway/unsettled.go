package gateway

import (
	"sync/atomic"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// marked is the journal as far as unsettled asks it: *settle.Settler.
type marked interface {
	Mark() uint64
	Settled(mark uint64) bool
}

// unsettled knows whether the store has been charged what this gateway let pass
// while the store was away. Until then the store believes that more is left than
// there is, and rules with onStoreLoss local go on by their shares. It is safe
// for concurrent use; the zero value is settled.
type unsettled struct {
	away    func() bool // the store's breaker is open
	journal marked
	// quotas and rates are the ends of what passed in the journal: quotas may have
	// to wait for a restore while rates do not.
	quotas, rates atomic.Uint64
	earlier       uint64 // the end of what an earlier process left
}

// begin takes over what an earlier process left in the journal.
func (u *unsettled) begin(journal marked, pending bool) {
	u.journal = journal
	if pending {
		u.earlier = journal.Mark()
		u.quotas.Store(u.earlier)
		u.rates.Store(u.earlier)
	}
}

// begun reports whether the store has been charged what an earlier process left.
func (u *unsettled) begun() bool { return u.journal != nil && u.journal.Settled(u.earlier) }

func (u *unsettled) markOf(r *rule.Compiled) *atomic.Uint64 {
	if r.Algorithm.Quota() {
		return &u.quotas
	}
	return &u.rates
}

// passed says that what those rules let pass in an outage is in the journal. What
// passes afterwards, until it is settled, is not waited for: it would never end.
func (u *unsettled) passed(uncounted []rule.Match) {
	for i := range uncounted {
		if r := uncounted[i].Rule; u.journal != nil && r.OnStoreLoss == rules.StoreLossLocal {
			raise(u.markOf(r), u.journal.Mark())
		}
	}
}

func raise(mark *atomic.Uint64, to uint64) {
	for {
		now := mark.Load()
		if to <= now || mark.CompareAndSwap(now, to) {
			return
		}
	}
}

// holds reports whether a rule goes by its share though the store is there.
func (u *unsettled) holds(r *rule.Compiled) bool {
	return r.OnStoreLoss == rules.StoreLossLocal && !r.Shadow && r.Unreadable == "" &&
		u.journal != nil && !u.away() && !u.journal.Settled(u.markOf(r).Load())
}
