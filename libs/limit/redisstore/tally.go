package redisstore

import "time"

// Units are a share of the two numbers of a quota.
type Units struct {
	Consumed int64 `json:"consumed,omitempty"`
	Refunded int64 `json:"refunded,omitempty"`
}

// Plus adds.
func (u Units) Plus(o Units) Units {
	return Units{u.Consumed + o.Consumed, u.Refunded + o.Refunded}
}

func (u Units) max(o Units) Units {
	return Units{max(u.Consumed, o.Consumed), max(u.Refunded, o.Refunded)}
}

// Bounds of a tally.
const (
	// tallyFor is how long it looks back, by Redis's clock: a call is lost, and so
	// asked about, CallTimeout after it was sent.
	tallyFor = 15 * time.Second
	// tallyBack is how much later than others an answer is heard at most; where it
	// seems more, Redis's clock was set back.
	tallyBack = 500 * time.Millisecond
	// Of a shard of the memory, about 100 bytes each.
	tallyLeast, tallyMost = 16, 8192
)

// tallied is what one answer said of a quota: by how much this process moved its
// numbers, and how far it had seen them before.
type tallied struct {
	key, marker string // of the quota, and the one that the call named
	at          int64  // µs of Redis's clock
	units       Units
	// before are the highest totals that this process knew, as of beforeAt; after
	// those that the answer told. Neither is there of what is unplaced.
	before, after Units
	beforeAt      int64
	// unplaced: it was charged between at and beforeAt, and nobody was told where: a
	// receipt says so.
	unplaced bool
	// vague: it is not certain. It gave back, and nothing of the quota is used after
	// it, so that it may have been more than there was; or, unplaced, somebody else
	// may have done what shows.
	vague bool
}

// until is up to when it may matter.
func (e *tallied) until() int64 {
	if e.unplaced {
		return max(e.at, e.beforeAt)
	}
	return e.at
}

// tally has what this process charged lately. Every charge takes the numbers of
// its quota on from where the last one left them, so that those which some
// process was answered, and those which nobody was, fill the way between two
// totals. It is a ring that grows with what is charged in tallyFor, and is guarded
// by its shard.
type tally struct {
	ring    []tallied // its length is a power of two
	head, n int       // the oldest one, and how many there are
	evicted int64     // when the newest one was that is not there any more
	newest  int64     // when the newest answer was
}

func (t *tally) at(i int) *tallied { return &t.ring[(t.head+i)&(len(t.ring)-1)] }

func (t *tally) add(e tallied) {
	if e.at < t.newest-tallyBack.Microseconds() {
		t.evicted = max(t.evicted, t.newest) // by such a clock nothing can be told apart
		t.newest = e.at
	}
	t.newest = max(t.newest, e.at)
	for t.n > 0 && (t.n == tallyMost || e.at-t.at(0).at > tallyFor.Microseconds()) {
		t.evicted = max(t.evicted, t.at(0).until())
		t.head, t.n = t.head+1, t.n-1
	}
	if t.n == len(t.ring) {
		grown := make([]tallied, max(tallyLeast, 2*len(t.ring)))
		for i := range t.n {
			grown[i] = *t.at(i)
		}
		t.ring, t.head = grown, 0
	}
	t.n++
	*t.at(t.n - 1) = e
}

// share is what one process knows of a quota's charges since a time.
type share struct {
	// Base are the highest totals it had seen before that time, as of BaseAt, µs of
	// Redis's clock.
	Base   Units `json:"base"`
	BaseAt int64 `json:"baseAt"`
	// Moved is by how much it moved them since, Unplaced what it moved besides, then
	// or before.
	Moved    Units      `json:"moved"`
	Unplaced []unplaced `json:"unplaced,omitempty"`
	// Partial: it remembers less than it did since that time.
	Partial bool `json:"partial,omitempty"`
}

// unplaced is a charge that was made between two times, µs of Redis's clock.
type unplaced struct {
	From  int64 `json:"from"`
	Until int64 `json:"until"`
	Units Units `json:"units"`
}

// since tells what this process knows of a quota's charges under a marker since
// a time, µs of Redis's clock.
//
// Answers are not heard in the order of their charges: the base is what was
// known before the first one that was heard, or what a later one said of before
// the time.
func (m *memory) since(key, marker string, at int64) share {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.young[key]
	if !ok {
		known = s.old[key]
	}
	answer := share{Base: Units{known.consumed, known.refunded}, BaseAt: known.at, Partial: s.tally.evicted >= at}
	first := true
	var older tallied
	for i := range s.tally.n {
		switch e := s.tally.at(i); {
		case e.key != key:
		case e.unplaced && e.marker == marker:
			answer.Unplaced = append(answer.Unplaced, unplaced{e.at, e.beforeAt, e.units})
			answer.Partial = answer.Partial || e.vague
		case e.marker == marker && e.at >= at:
			answer.Moved, answer.Partial = answer.Moved.Plus(e.units), answer.Partial || e.vague
			if first {
				answer.Base, answer.BaseAt, first = e.before, e.beforeAt, false
			}
		case !e.unplaced:
			older.after, older.at = older.after.max(e.after), max(older.at, e.at)
			answer.Partial = answer.Partial || e.at >= at // the marker was another by then
		}
	}
	if higher := answer.Base.max(older.after); higher != answer.Base {
		answer.Base, answer.BaseAt = higher, older.at
	}
	return answer
}

// place notes a charge of which it is known that it was made between two times,
// and no more; vague where somebody else may have made it.
func (m *memory) place(key, marker string, from, until int64, units Units, vague bool) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.add(tallied{key: key, marker: marker, at: from, beforeAt: until, units: units, unplaced: true, vague: vague})
}
