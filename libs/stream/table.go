package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/backoff"
)

// Entry is the value of a live key, and where it comes from.
type Entry[V any] struct {
	Value               V
	Generation, Version int64
	// CommittedAt is the commit in Postgres, zero where it is not known;
	// RelayedAt when the relay handed the record on, AppliedAt when this table
	// took it. Each by the clock of its own machine, in µs.
	CommittedAt, RelayedAt, AppliedAt time.Time
}

// Change is one key that changed.
type Change[V any] struct {
	Key string
	// Entry is the new value; of a deleted key, only the stamp.
	Entry   Entry[V]
	Deleted bool
}

// Sink hears of a table's content. It is called from one goroutine, in topic
// order, and must not block for long: records wait meanwhile.
type Sink[V any] interface {
	// Replace hands over the first complete copy, or a rebuilt one. The map is
	// the sink's to keep.
	Replace(entries map[string]Entry[V])
	// Apply hands over one change after that.
	Apply(Change[V])
}

// TableOptions say what a table reads and how.
type TableOptions[V any] struct {
	// Topic is its name in the registry, without prefix.
	Topic string
	// Decode makes a value of a record; the bytes are the table's. An error
	// makes the record a bad one: the key keeps its last good value.
	Decode func(key string, value []byte) (V, error)
	// Salvage makes a stand-in of a bad record whose key has no good value, where
	// it can; until there is one, entries and sink have the stand-in. May be nil.
	Salvage func(key string, value []byte, why error) (V, bool)
	// Sink may be nil.
	Sink Sink[V]
	// Registerer and Log may be nil. Now nil means time.Now.
	Registerer prometheus.Registerer
	Log        *slog.Logger
	Now        func() time.Time
	// SilenceLimit is how long the reading may stand still although the topic
	// goes on; 0 means 5 s.
	SilenceLimit time.Duration
}

// mirrorLimit is how many mirror records in a row may differ before the copy
// is given up: one differs when a relay is taken over, many when we are wrong.
const mirrorLimit = 3

// Table is a compacted topic as a map in memory. Get, Len, Snapshot, State,
// Age and Ready may be called at any time, from any goroutine.
type Table[V any] struct {
	cfg     Config
	o       TableOptions[V]
	metrics *metrics

	mu       sync.RWMutex
	follower *Follower
	served   *tableCopy[V] // nil before the first complete copy
	building *tableCopy[V] // nil while served is current
	equalAt  time.Time     // of the newest mirror record that was equalled
	differed int           // mirror records in a row that were not
	// lost is why the last copy was given up; nil when the current is whole.
	lost error
}

// NewTable prepares a table; Run fills it.
func NewTable[V any](cfg Config, o TableOptions[V]) (*Table[V], error) {
	if o.Topic == "" || o.Decode == nil {
		return nil, errors.New("a table needs a topic and a way to decode it")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.SilenceLimit <= 0 {
		o.SilenceLimit = 5 * time.Second
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", o.Topic, err)
	}
	t := &Table[V]{cfg: cfg, o: o, metrics: m}
	m.age.WithLabelValues(o.Topic).Set(math.Inf(1))
	m.ready.WithLabelValues(o.Topic).Set(0)
	return t, nil
}

// Run keeps the table current until ctx ends; then it returns nil. It does
// not end because Kafka is away.
func (t *Table[V]) Run(ctx context.Context) error {
	aged := make(chan struct{})
	go func() { // owned by Run, which waits for it below
		defer close(aged)
		t.reportAge(ctx)
	}()
	defer func() { <-aged }()
	pause := backoff.Backoff{Min: 100 * time.Millisecond, Max: 15 * time.Second}
	for ctx.Err() == nil {
		follower := NewFollower(t.cfg, t.o.Topic, t.handle)
		follower.stallLimit = t.o.SilenceLimit
		t.begin(follower)
		err := follower.Run(ctx)
		if ctx.Err() != nil {
			break
		}
		t.o.Log.Warn("table is built anew", "topic", follower.topic, "why", err)
		t.metrics.rebuilds.WithLabelValues(t.o.Topic).Inc()
		if t.abandon(err) {
			pause.Reset()
		}
		if pause.Wait(ctx) != nil {
			break
		}
	}
	return nil
}

// begin starts a copy beside the one that is served.
func (t *Table[V]) begin(f *Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.follower, t.building, t.differed = f, newTableCopy[V](), 0
}

// abandon notes why a copy was given up and reports whether it had been whole.
func (t *Table[V]) abandon(why error) (whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	whole = t.building == nil
	t.lost = why
	return whole
}

func (t *Table[V]) reportAge(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.metrics.age.WithLabelValues(t.o.Topic).Set(t.Age().Seconds())
		}
	}
}
