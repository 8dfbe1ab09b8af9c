package stream

// Strict makes Run also give up when a record that is still needed was deleted
// from the topic (DeleteRecords): the relay has to write it again, while a
// table that holds it need not care. needed returns the lowest offset that the
// topic must still have, given all that was handled (math.MaxInt64 when there
// is none); it is called from a goroutine of Run's. What compaction takes away
// is not needed: it leaves the newest record of each key. Call Strict before
// Run.
func (f *Follower) Strict(needed func() int64) *Follower {
	f.needed = needed
	return f
}

// shedding follows a topic's first offset, which moves when records are
// deleted, and on a broker that compacts up to its first survivor.
type shedding struct {
	// proven is a first offset before which nothing was needed.
	proven int64
	// open is a look that found the topic to begin later than that and is not
	// judged yet; its end is 0 if there is none.
	open bounds
}

// lost reports whether something needed lay before the topic's first offset.
// It judges a look only once all has been read that was in the topic then: a
// record may be gone because one that is yet to be read replaces it.
func (s *shedding) lost(now bounds, position int64, needed func() int64) bool {
	if s.open.end == 0 && now.start > s.proven {
		s.open = now
	}
	if s.open.end == 0 || position < s.open.end {
		return false
	}
	if needed() < s.open.start {
		return true
	}
	s.proven, s.open = s.open.start, bounds{}
	return false
}
