package relay

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events"
)

// mirrorAll writes a mirror record into each compacted topic, or only where
// something changed since the last. One that is still under way is not
// doubled: while Kafka is away they would pile up.
func (r *session) mirrorAll(changedOnly bool) error {
	for _, t := range r.order {
		if changedOnly && !t.changed || r.underWay(t) {
			continue
		}
		if err := r.mirror(t); err != nil {
			return err
		}
	}
	return nil
}

func (r *session) underWay(t *table) bool {
	r.flight.mu.Lock()
	defer r.flight.mu.Unlock()
	return t.mirrored != nil && !t.mirrored.done
}

// mirror says what a faithful copy of the topic holds once it has read all
// that was handed out before.
func (r *session) mirror(t *table) error {
	if err := r.held(); err != nil {
		return err
	}
	now := r.s.deps.Now()
	value, err := json.Marshal(events.Mirror{
		Generation: t.generation, Origin: r.reader.Origin, Count: t.account.Count(), Digest: stream.FormatDigest(t.account.Sum()),
		At: now.UnixMicro(), Relay: r.s.cfg.Instance,
	})
	if err != nil {
		return fmt.Errorf("encode mirror record: %w", err)
	}
	t.mirrored, t.changed = r.flight.depart(0, time.Now()), false
	r.s.metrics.records.WithLabelValues(t.Name).Set(float64(t.account.Count()))
	r.produce(&kgo.Record{Topic: r.s.deps.Stream.Topic(t.Name), Key: []byte(events.MirrorKey), Value: value}, t.mirrored, time.Time{})
	return nil
}
