package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/libs/stream"
)

// begin brings the topics up to date before the WAL is streamed. A stop of
// the relay cuts it short.
func (r *session) begin(parent context.Context) error {
	defer context.AfterFunc(parent, func() { r.fail(parent.Err()) })()
	if err := r.held(); err != nil {
		return err
	}
	if err := r.ensureTopics(); err != nil {
		return err
	}
	if err := r.readTopics(); err != nil {
		return err
	}
	if err := r.publishLeftover(); err != nil {
		return err
	}
	return r.reconcile()
}

func (r *session) ensureTopics() error {
	ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
	defer cancel()
	if err := stream.EnsureTopics(ctx, r.s.deps.Stream, r.s.deps.Topics, r.s.deps.Log); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	return nil
}

// readTopics starts the tails, waits until they have read everything, and
// settles each topic's generation.
func (r *session) readTopics() error {
	for _, topic := range r.s.deps.Topics {
		if !topic.Compacted {
			continue
		}
		t := &table{Topic: topic, tail: newTail(r.s.deps.Stream, topic, r.s.cfg.Instance, r.s.metrics, r.wakeup)}
		r.tables[topic.Name] = t
		r.order = append(r.order, t)
		r.start("tail", func() error { return t.tail.run(r.ctx) })
	}
	for _, t := range r.order {
		if err := r.await(t.tail.follower.CaughtUp); err != nil {
			return err
		}
		t.account, t.dirty = t.tail.align(nil)
		t.generation = r.generationOf(t)
		r.s.generations[t.Name] = t.generation
		r.s.deps.Log.Info("topic is read", "topic", t.Name, "records", t.account.Count(), "generation", t.generation)
	}
	return nil
}

// generationOf is the topic's own where it mirrors this very database, and
// one more where it mirrors another life: its versions say nothing about ours.
func (r *session) generationOf(t *table) int64 {
	mirror := t.tail.lastMirror()
	// What an earlier session wrote counts too: the topic may have been emptied.
	known := max(t.account.Generation(), mirror.Generation, r.s.generations[t.Name])
	switch {
	case known == 0:
		return 1
	case mirror.Origin == r.reader.Origin, mirror.Origin == "" && r.s.generations[t.Name] == known:
		return known
	}
	r.s.deps.Log.Warn("topic mirrors another database; a new generation begins", "topic", t.Name, "was", mirror.Origin, "is", r.reader.Origin, "generation", known+1)
	return known + 1
}

// await polls for what another goroutine brings about.
func (r *session) await(cond func() bool) error {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for !cond() {
		select {
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case <-ticker.C:
		}
	}
	return nil
}

const leftoverPage = 500

// publishLeftover carries the rows that lie in the outbox: those of a time
// without a slot never come from the WAL, the others come again.
func (r *session) publishLeftover() error {
	var after int64
	for {
		rows, err := outbox.Leftover(r.ctx, r.conn, after, leftoverPage)
		if err != nil {
			return err
		}
		for i := range rows {
			if err := r.publishRow(&rows[i]); err != nil {
				return err
			}
			r.early[rows[i].ID] = true
			after = rows[i].ID
		}
		if len(rows) < leftoverPage {
			return nil
		}
		if err := r.await(func() bool { return r.flight.len() < maxInFlight }); err != nil {
			return err
		}
	}
}
