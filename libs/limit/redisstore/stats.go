package redisstore

import "sync/atomic"

// Stats count what did not go as it should, since the store was made.
type Stats struct {
	// Left are calls that were not answered in time.
	Left uint64
	// Undone are charges given back: their answer came too late for the
	// decision, or another slot of it denied.
	Undone uint64
	// Lost are calls that were sent and never answered: nobody knows whether
	// they were charged.
	Lost uint64
	// Unknown are those of them that charged quotas and of which it will not be
	// known whether they did: no receipt could be had, or none was there after
	// a restore, which may have lost it; and charges that were still to be given
	// back when the store was closed.
	Unknown uint64
	// Restoring are decisions and settlements that were not made, because
	// quotas were not known to be whole.
	Restoring uint64
	// Asking are, at present, the lost calls whose receipt is still to be read: what
	// they charged is not given back yet.
	Asking int64
}

type counts struct {
	left, undone, lost, unknown, restoring atomic.Uint64
	asking                                 atomic.Int64
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	return Stats{Left: s.counts.left.Load(), Undone: s.counts.undone.Load(), Lost: s.counts.lost.Load(), Unknown: s.counts.unknown.Load(), Restoring: s.counts.restoring.Load(), Asking: s.counts.asking.Load()}
}
