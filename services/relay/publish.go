package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/libs/stream"
)

const (
	// maxInFlight bounds memory while Kafka is away: the WAL waits in Postgres.
	maxInFlight = 4096
	// mirrorSoon is how quickly a change is followed by a mirror record.
	mirrorSoon = 50 * time.Millisecond
)

// publish is the one goroutine that decides what is published, and in which
// order. It returns nil when the relay is to stop.
func (r *session) publish() error {
	r.s.mu.Lock()
	r.s.state, r.s.reason, r.s.flight = streaming, nil, r.flight
	r.s.mu.Unlock()

	mirror := time.NewTicker(r.s.cfg.MirrorEvery)
	defer mirror.Stop()
	reconcile := time.NewTicker(r.s.cfg.ReconcileEvery)
	defer reconcile.Stop()
	soon := time.NewTicker(mirrorSoon)
	defer soon.Stop()
	for {
		events := r.events
		if r.flight.len() >= maxInFlight {
			events = nil // until something has landed
		}
		var err error
		select {
		case <-r.stop:
			return nil
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case e := <-events:
			err = r.handle(e)
		case <-r.flight.landed:
			r.reader.Confirm(r.flight.position())
			r.s.metrics.inFlight.Set(float64(r.flight.len()))
		case <-soon.C:
			err = r.mirrorAll(true)
		case <-mirror.C:
			err = r.mirrorAll(false)
		case <-reconcile.C:
			err = errors.Join(r.ensureTopics(), r.reconcile())
		case <-r.wakeup:
			r.s.deps.Log.Warn("a topic holds what this relay did not write; reconciling")
			err = r.reconcile()
		}
		if err != nil {
			return err
		}
	}
}

func (r *session) handle(e outbox.Event) error {
	if e.Row == nil {
		r.flight.pass(e.Position, time.Now())
		return nil
	}
	if r.early[e.Row.ID] {
		delete(r.early, e.Row.ID)
		return nil
	}
	return r.publishRow(e.Row)
}

// publishRow carries one outbox row, unless the topic holds the same or newer.
func (r *session) publishRow(row *outbox.Row) error {
	if r.s.parked[row.ID] {
		return nil
	}
	topic, known := r.s.topics[row.Topic]
	if !known {
		r.park(row.ID, row.Topic, row.Key, "the registry has no such topic")
		return nil
	}
	t := r.tables[row.Topic]
	if t == nil {
		_, err := r.send(r.record(topic.Name, 0, row), row, topic.Name)
		return err
	}
	if held, ok := t.account.Get(row.Key); ok && !held.Newer(t.generation, row.Version) {
		r.s.metrics.skipped.WithLabelValues(t.Name).Inc()
		r.flight.land(r.flight.depart(row.ID, time.Now()), false)
		return nil
	}
	if t.touched != nil {
		t.touched[row.Key] = true
	}
	return r.put(t, row)
}

// put publishes to a compacted topic and takes it to account.
func (r *session) put(t *table, row *outbox.Row) error {
	sent, err := r.send(r.record(t.Name, t.generation, row), row, t.Name)
	if err != nil || !sent {
		return err
	}
	t.account.Apply(row.Key, t.generation, row.Version, row.Payload)
	delete(t.dirty, row.Key)
	t.changed = true
	return nil
}

func (r *session) record(topic string, generation int64, row *outbox.Row) *kgo.Record {
	stamp := stream.Stamp{Generation: generation, Version: row.Version, CommittedAt: row.CommittedAt, RelayedAt: r.s.deps.Now()}
	headers := stamp.Headers()
	for _, name := range slices.Sorted(maps.Keys(row.Headers)) {
		headers = append(headers, kgo.RecordHeader{Key: name, Value: []byte(row.Headers[name])})
	}
	return &kgo.Record{Topic: r.s.deps.Stream.Topic(topic), Key: []byte(row.Key), Value: row.Payload, Headers: headers}
}

// tooLarge leaves room for the batch around the record.
func tooLarge(rec *kgo.Record) bool {
	size := len(rec.Key) + len(rec.Value) + 4096
	for _, h := range rec.Headers {
		size += len(h.Key) + len(h.Value)
	}
	return size > stream.MaxRecordBytes
}

// send hands a record to Kafka, or parks it. Its acknowledgement lands the
// passage; an error of the producer ends the session, and the row is carried
// by the next.
func (r *session) send(rec *kgo.Record, row *outbox.Row, topic string) (sent bool, err error) {
	if tooLarge(rec) {
		r.park(row.ID, topic, row.Key, "it is larger than a record may be")
		return false, nil
	}
	if err := r.held(); err != nil {
		return false, err
	}
	r.s.metrics.published.WithLabelValues(topic).Inc()
	r.produce(rec, r.flight.depart(row.ID, time.Now()), row.CommittedAt)
	return true, nil
}

func (r *session) produce(rec *kgo.Record, p *passage, committedAt time.Time) {
	r.kafka.Produce(r.ctx, rec, func(_ *kgo.Record, err error) {
		switch {
		case err == nil:
			if p.row != 0 && !committedAt.IsZero() {
				r.s.metrics.ackSeconds.Observe(max(0, r.s.deps.Now().Sub(committedAt).Seconds()))
			}
			r.flight.land(p, false)
		case errors.Is(err, context.Canceled):
			// The session has ended; the next carries it.
		default:
			r.fail(fmt.Errorf("produce to %s: %w", rec.Topic, refusal(err)))
		}
	})
}

// refusal explains a refusal that this relay's own limit should have
// prevented: the topic's max.message.bytes was lowered.
func refusal(err error) error {
	if errors.Is(err, kerr.MessageTooLarge) {
		return fmt.Errorf("%w (the topic's max.message.bytes is below the %d that Sluice relies on)", err, stream.MaxRecordBytes)
	}
	return err
}

// park leaves a row in the outbox that can never be carried, so that it does
// not hold up the rest. A row of reconciliation (id 0) is only reported.
func (r *session) park(id int64, topic, key, why string) {
	if id != 0 {
		r.s.parked[id] = true
		r.s.metrics.parked.Set(float64(len(r.s.parked)))
	}
	r.s.deps.Log.Error("record is not carried", "topic", topic, "key", key, "outboxId", id, "why", why)
}
