package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/schemas/events"
)

var errMirrorDiffers = errors.New("differs from the mirror records")

// tableCopy is one reading of the topic.
type tableCopy[V any] struct {
	ledger  Ledger
	entries map[string]Entry[V]
	// equal is the verdict of the newest mirror record.
	equal, sawMirror bool
	// bad names the keys whose newest record is not understood, and why.
	bad map[string]string
	// unread are the live keys that never had a good value; entries may hold
	// stand-ins for them.
	unread map[string]struct{}
}

func newTableCopy[V any]() *tableCopy[V] {
	return &tableCopy[V]{entries: map[string]Entry[V]{}, bad: map[string]string{}, unread: map[string]struct{}{}}
}

// reading is what became of a record's value.
type reading struct {
	err      error // nil: it is good
	salvaged bool  // there is a stand-in for it
}

// set takes a change into the entries and reports whether they changed. A bad
// record leaves its key's good value alone.
func (c *tableCopy[V]) set(ch Change[V], r reading) (changed bool) {
	_, has := c.entries[ch.Key]
	_, unread := c.unread[ch.Key]
	switch {
	case r.err == nil && ch.Deleted:
		delete(c.entries, ch.Key)
		delete(c.unread, ch.Key)
	case r.err == nil:
		c.entries[ch.Key] = ch.Entry
		delete(c.unread, ch.Key)
	case has && !unread:
		return false
	default:
		c.unread[ch.Key] = struct{}{}
		if !r.salvaged {
			return false
		}
		c.entries[ch.Key] = ch.Entry
	}
	return true
}

// handle takes one record; the follower calls it in topic order.
func (t *Table[V]) handle(rec *kgo.Record) error {
	if string(rec.Key) == events.MirrorKey {
		if err := t.handleMirror(rec); err != nil {
			return err
		}
	} else {
		t.handleRecord(rec)
	}
	t.promote(rec.Offset + 1)
	return nil
}

func (t *Table[V]) handleRecord(rec *kgo.Record) {
	key := string(rec.Key)
	stamp, err := ParseStamp(rec.Headers)
	if err != nil {
		// Without a version it has no place in the order: as if it were not there.
		t.reportBad(key, rec.Offset, err)
		return
	}
	ch := Change[V]{Key: key, Deleted: rec.Value == nil, Entry: Entry[V]{
		Generation: stamp.Generation, Version: stamp.Version,
		CommittedAt: stamp.CommittedAt, RelayedAt: stamp.RelayedAt, AppliedAt: t.o.Now(),
	}}
	var got reading
	if !ch.Deleted {
		ch.Entry.Value, got.err = t.o.Decode(key, rec.Value)
	}
	if got.err != nil && t.o.Salvage != nil {
		ch.Entry.Value, got.salvaged = t.o.Salvage(key, rec.Value, got.err)
	}
	taken, shown := t.take(ch, rec.Value, got)
	if got.err != nil && taken {
		t.reportBad(key, rec.Offset, got.err)
	}
	if shown {
		t.show(ch)
	}
}

// current is the copy that is being read into; t.mu is held.
func (t *Table[V]) current() *tableCopy[V] {
	if t.building != nil {
		return t.building
	}
	return t.served
}

// take offers the change to the copies. taken: it was news to the current
// copy; shown: it changes what is served.
func (t *Table[V]) take(ch Change[V], value []byte, got reading) (taken, shown bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	current := t.current()
	outcome := current.ledger.Apply(ch.Key, ch.Entry.Generation, ch.Entry.Version, value)
	if outcome == Stale {
		t.metrics.stale.WithLabelValues(t.o.Topic).Inc()
	}
	taken = outcome == Taken
	changed := false
	if taken {
		changed = current.set(ch, got)
		if got.err == nil {
			delete(current.bad, ch.Key)
		}
	}
	if current == t.served {
		return taken, changed
	}
	return taken, t.takeServed(ch, value, got)
}

// takeServed lets the copy that is still served have what is strictly newer
// than it knows, so that rebuilding delays no change; t.mu is held.
func (t *Table[V]) takeServed(ch Change[V], value []byte, got reading) bool {
	if t.served == nil {
		return false
	}
	if held, known := t.served.ledger.Get(ch.Key); known && !held.Newer(ch.Entry.Generation, ch.Entry.Version) {
		return false
	}
	if t.served.ledger.Apply(ch.Key, ch.Entry.Generation, ch.Entry.Version, value) != Taken {
		return false
	}
	return t.served.set(ch, got)
}

// show tells the sink and the metrics of a change to what is served.
func (t *Table[V]) show(ch Change[V]) {
	t.metrics.records.WithLabelValues(t.o.Topic).Set(float64(t.Len()))
	t.metrics.unread.WithLabelValues(t.o.Topic).Set(float64(t.Unread()))
	if !ch.Entry.CommittedAt.IsZero() {
		t.metrics.propagation.WithLabelValues(t.o.Topic).Observe(max(0, ch.Entry.AppliedAt.Sub(ch.Entry.CommittedAt).Seconds()))
	}
	if t.o.Sink != nil {
		t.o.Sink.Apply(ch)
	}
}

func (t *Table[V]) reportBad(key string, offset int64, err error) {
	t.metrics.bad.WithLabelValues(t.o.Topic).Inc()
	t.o.Log.Error("record is not understood; its key keeps its last good value", "topic", t.cfg.Topic(t.o.Topic), "key", key, "offset", offset, "error", err)
	t.mu.Lock()
	t.current().bad[key] = err.Error()
	t.mu.Unlock()
	t.metrics.unread.WithLabelValues(t.o.Topic).Set(float64(t.Unread()))
}

// handleMirror compares the copy that is being read with the relay's account.
func (t *Table[V]) handleMirror(rec *kgo.Record) error {
	var m events.Mirror
	if err := json.Unmarshal(rec.Value, &m); err != nil {
		t.reportBad("mirror record", rec.Offset, err)
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	current := t.current()
	// A mirror record of an earlier generation is that of a relay which mirrors
	// an earlier life of the database, and proves nothing. If only such come,
	// the topic was emptied and it is this copy that belongs to the past.
	valid := m.Generation >= current.ledger.Generation()
	if valid {
		current.sawMirror, current.equal = true, current.ledger.Equals(m)
	}
	if valid && current.equal {
		t.equalAt, t.differed = time.UnixMicro(m.At), 0
		return nil
	}
	if t.follower.CaughtUp() {
		t.differed++
	}
	if t.differed < mirrorLimit {
		return nil
	}
	return fmt.Errorf("%w: %d records with digest %s here, %d with %s there",
		errMirrorDiffers, current.ledger.Count(), FormatDigest(current.ledger.Sum()), m.Count, m.Digest)
}

// promote swaps the new copy in when it is whole: the newest mirror record
// agrees, and all is read that was there when reading began (an older mirror
// record agrees with an older state). position is the next offset.
func (t *Table[V]) promote(position int64) {
	t.mu.Lock()
	whole := t.building != nil && t.building.equal && position >= t.follower.target.Load()
	if !whole {
		t.mu.Unlock()
		return
	}
	t.keepGood(t.building)
	t.served, t.building, t.lost = t.building, nil, nil
	entries := maps.Clone(t.served.entries)
	t.mu.Unlock()
	t.metrics.ready.WithLabelValues(t.o.Topic).Set(1)
	t.metrics.records.WithLabelValues(t.o.Topic).Set(float64(len(entries)))
	t.metrics.unread.WithLabelValues(t.o.Topic).Set(float64(t.Unread()))
	if t.o.Sink != nil {
		t.o.Sink.Replace(entries)
	}
	t.o.Log.Info("table is complete", "topic", t.cfg.Topic(t.o.Topic), "records", len(entries))
}

// keepGood carries the last good value of a bad key over into a new copy,
// which may have found only the bad record; t.mu is held.
func (t *Table[V]) keepGood(next *tableCopy[V]) {
	if t.served == nil {
		return
	}
	for key := range next.bad {
		mark, known := next.ledger.Get(key)
		_, unread := next.unread[key]
		good, had := t.served.entries[key]
		if _, standIn := t.served.unread[key]; known && mark.Live && unread && had && !standIn {
			next.entries[key] = good
			delete(next.unread, key)
		}
	}
}
