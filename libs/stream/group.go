package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Record is one record of a topic that is not compacted.
type Record struct {
	Key, Value []byte
	Topic      string // full name
	Partition  int32
	Offset     int64
	Timestamp  time.Time
	// Headers are the record's, in its order; nil where it has none.
	Headers []kgo.RecordHeader
}

// Header is the value of the first header of that name, empty without one.
func (r Record) Header(name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// GroupOptions say what a member of a consumer group reads and who handles it.
type GroupOptions struct {
	// Group and Topic are named without deployment prefix.
	Group, Topic string
	// Handle is called with at most MaxBatch records, those of a partition in
	// order. Their offsets are committed only after it returned nil; after an
	// error the same batch comes again, after a pause. It must return when ctx
	// ends. Called from one goroutine.
	Handle func(ctx context.Context, batch []Record) error
	// OnAssigned and OnRevoked may be nil. OnRevoked is called after the
	// offsets of what was handled are committed, never during Handle.
	OnAssigned, OnRevoked func(partitions []int32)
	// ManualCommit leaves committing to Group.Commit.
	ManualCommit bool
	// BeforeRevoke, with ManualCommit, is called before partitions are given
	// up or Run ends, so that what was handled can be made durable; if it
	// returns nil, the offsets of all that was handled are committed.
	BeforeRevoke func(ctx context.Context) error
	// MaxBatch is 500 where it is 0.
	MaxBatch int
	// Registerer and Log may be nil.
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// ErrLostPosition: the group's committed offset no longer exists, so records
// were deleted before this group read them. Nothing is skipped in silence; the
// group goes on only after its offsets were set anew by an operator.
var ErrLostPosition = errors.New("committed offset is out of range: records were deleted unread")

// Group is one member of a consumer group.
type Group struct {
	cfg     Config
	o       GroupOptions
	metrics *metrics

	// handling is held by whoever calls Handle or gives partitions up, so that
	// the two never overlap. mu guards the fields below and is never held
	// while something is waited for.
	handling sync.Mutex

	mu      sync.Mutex
	client  *kgo.Client
	joined  bool
	handled map[int32]*kgo.Record // the last handled, not yet committed
	gone    map[int32]bool        // given up since the batch was polled
	broken  map[int32]error       // see ErrLostPosition
}

// NewGroup prepares a member; it joins in Run.
func NewGroup(cfg Config, o GroupOptions) (*Group, error) {
	if o.Group == "" || o.Topic == "" || o.Handle == nil {
		return nil, errors.New("a group needs a name, a topic and a handler")
	}
	if o.MaxBatch <= 0 {
		o.MaxBatch = 500
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", o.Group, err)
	}
	return &Group{cfg: cfg, o: o, metrics: m, handled: map[int32]*kgo.Record{}, gone: map[int32]bool{}, broken: map[int32]error{}}, nil
}
