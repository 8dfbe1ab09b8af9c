package stream

import "github.com/sluice-platform/sluice/schemas/events"

// Mark is what a ledger knows of a key: its newest record, deletions included.
type Mark struct {
	Generation, Version int64
	// Digest is the record's part of the sum; meaningless unless Live.
	Digest uint64
	// Live is false for a deleted key.
	Live bool
}

// Newer reports whether a record of (generation, version) is newer than m.
func (m Mark) Newer(generation, version int64) bool {
	if generation != m.Generation {
		return generation > m.Generation
	}
	return version > m.Version
}

// Outcome is what became of a record that was shown to a ledger.
type Outcome uint8

const (
	// Stale: older than what is held; ignored.
	Stale Outcome = iota
	// Same: what is held already, to the byte.
	Same
	// Taken: newer, or as new with another content (the later in the topic wins).
	Taken
)

// Ledger decides which record of a key counts and keeps the sum of those that
// do. Deleted keys are remembered for as long as the ledger lives, so that
// nothing late revives one. It belongs to one goroutine; the zero value is empty.
type Ledger struct {
	marks      map[string]Mark
	count      int64
	sum        uint64
	generation int64
}

// Apply shows a record to the ledger; a nil value is a deletion.
func (l *Ledger) Apply(key string, generation, version int64, value []byte) Outcome {
	old, known := l.marks[key]
	next := Mark{Generation: generation, Version: version, Live: value != nil}
	if next.Live {
		next.Digest = Digest(key, version, value)
	}
	switch {
	case known && old.Newer(generation, version):
	case known && old == next:
		return Same
	case known && (old.Generation != generation || old.Version != version):
		return Stale
	}
	l.put(key, old, next)
	return Taken
}

func (l *Ledger) put(key string, old, next Mark) {
	if l.marks == nil {
		l.marks = map[string]Mark{}
	}
	if old.Live {
		l.count--
		l.sum -= old.Digest
	}
	if next.Live {
		l.count++
		l.sum += next.Digest
	}
	l.marks[key] = next
	l.generation = max(l.generation, next.Generation)
}

// Get is the mark of a key.
func (l *Ledger) Get(key string) (Mark, bool) {
	m, known := l.marks[key]
	return m, known
}

// Count is the number of live keys.
func (l *Ledger) Count() int64 { return l.count }

// Sum is the digest of all live keys.
func (l *Ledger) Sum() uint64 { return l.sum }

// Generation is the greatest seen.
func (l *Ledger) Generation() int64 { return l.generation }

// Each calls f for every key, deleted ones included, until f returns false.
func (l *Ledger) Each(f func(key string, m Mark) bool) {
	for key, m := range l.marks {
		if !f(key, m) {
			return
		}
	}
}

// Clone is an independent copy.
func (l *Ledger) Clone() *Ledger {
	c := &Ledger{marks: make(map[string]Mark, len(l.marks)), count: l.count, sum: l.sum, generation: l.generation}
	for key, m := range l.marks {
		c.marks[key] = m
	}
	return c
}

// Equals reports whether the ledger amounts to what the mirror record says.
func (l *Ledger) Equals(m events.Mirror) bool {
	return m.Count == l.count && m.Digest == FormatDigest(l.sum)
}
