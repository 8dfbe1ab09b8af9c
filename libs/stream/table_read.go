package stream

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Ready is nil once the table has equalled a mirror record, and stays nil from
// then on: what is stale is still better than nothing, and Age tells.
func (t *Table[V]) Ready() error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.served != nil {
		return nil
	}
	if t.follower == nil {
		return fmt.Errorf("table %s: not running", t.o.Topic)
	}
	return fmt.Errorf("table %s: %w", t.o.Topic, t.whyNot())
}

// whyNot names the first thing that is missing; t.mu is held.
func (t *Table[V]) whyNot() error {
	if err := t.follower.Trouble(); err != nil {
		return err
	}
	b := t.building
	switch {
	case t.lost != nil && !t.follower.CaughtUp():
		return t.lost
	case !t.follower.CaughtUp():
		return fmt.Errorf("still reading: offset %d of %d", t.follower.Position(), t.follower.target.Load())
	case b == nil:
		return errors.New("not running")
	case !b.sawMirror:
		return errors.New("no mirror record yet: has the relay run?")
	}
	return fmt.Errorf("differs from the mirror record: %d records here", b.ledger.Count())
}

// Get is the entry of a live key.
func (t *Table[V]) Get(key string) (Entry[V], bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.served == nil {
		return Entry[V]{}, false
	}
	e, ok := t.served.entries[key]
	return e, ok
}

// Unread is the number of live keys of which no version could be read; 0
// before the table is ready.
func (t *Table[V]) Unread() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.served == nil {
		return 0
	}
	return len(t.served.unread)
}

// Len is the number of live keys that have a good value, or a stand-in.
func (t *Table[V]) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.served == nil {
		return 0
	}
	return len(t.served.entries)
}

// Snapshot is a copy of all entries; empty before the table is ready.
func (t *Table[V]) Snapshot() map[string]Entry[V] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.served == nil {
		return map[string]Entry[V]{}
	}
	return maps.Clone(t.served.entries)
}

// Age is the time since the relay wrote the newest mirror record that this
// table equalled; the longest duration there is before the first.
func (t *Table[V]) Age() time.Duration {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.equalAt.IsZero() {
		return math.MaxInt64
	}
	return max(0, t.o.Now().Sub(t.equalAt))
}

// TableState is a table at one instant, for operators and tests.
type TableState struct {
	Ready      bool
	Generation int64
	// Count and Digest are over all live records, those included whose value
	// could not be decoded.
	Count  int64
	Digest string
	// Bad names the keys whose newest record is not understood, and why.
	Bad map[string]string
	// Unread are those of them of which no version could be read.
	Unread []string
	// Trouble says why the table is not current, empty if it is.
	Trouble string
}

// State describes the copy that is served.
func (t *Table[V]) State() TableState {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := TableState{Bad: map[string]string{}, Digest: FormatDigest(0)}
	if t.served != nil {
		maps.Copy(s.Bad, t.served.bad)
		s.Unread = slices.Sorted(maps.Keys(t.served.unread))
		s.Ready = true
		s.Count, s.Digest, s.Generation = t.served.ledger.Count(), FormatDigest(t.served.ledger.Sum()), t.served.ledger.Generation()
	}
	var troubles []string
	if t.follower != nil && t.follower.Trouble() != nil {
		troubles = append(troubles, t.follower.Trouble().Error())
	}
	if t.lost != nil {
		troubles = append(troubles, t.lost.Error())
	}
	s.Trouble = strings.Join(troubles, "; ")
	return s
}
