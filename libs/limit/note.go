package limit

import "time"

// Note names a decision to its store, which writes the number down beside the
// counters in the very step that charges them. Whoever comes later, another
// process perhaps, learns by it whether the decision was charged, and can have
// that given back once; what was not charged by then never will be.
type Note struct {
	// Name is of one decision at a time. Stores keep a name's last number for 30
	// days after it was written.
	Name string
	// Number grows with each decision of a name; 1 to MaxNote.
	Number uint64
	// Of are the places of the decision's counters that it is about, a bit each.
	// Counters judged apart (Counter.Apart) have none.
	Of uint64
	// At is when the counters are charged, by the store's clock. The decision is
	// ErrOtherPeriod where that clock is in another period of a quota by then.
	At time.Time
}

// MaxNote is the highest number of a note: its charge and its end are a number
// each, below 2^53.
const MaxNote = 1<<52 - 1

// MaxNoted is how many counters of a decision a note can be about.
const MaxNoted = 64

// About reports whether the note is about the counter at a place.
func (n *Note) About(place int) bool { return place < MaxNoted && n.Of>>place&1 == 1 }

// Charge is the number that says: charged.
func (n *Note) Charge() uint64 { return 2 * n.Number }

// End is the number that says: given back, or never to be charged.
func (n *Note) End() uint64 { return 2*n.Number + 1 }
