package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/libs/stream"
)

// drainEvery is how many rows of a view are judged between two looks at the
// WAL: a large view must not hold up a rule that was just written.
const drainEvery = 64

// reconcile makes each compacted topic equal to its view. Rows that arrive
// from the WAL meanwhile are carried in between; the snapshot says nothing
// about their keys (table.touched).
func (r *session) reconcile() error {
	began := time.Now()
	if err := r.quiesce(); err != nil {
		return err
	}
	select { // what it says is dealt with here
	case <-r.wakeup:
	default:
	}
	for _, t := range r.order {
		t.account, t.dirty = t.tail.align(t.account)
		t.touched = map[string]bool{}
	}
	defer func() {
		for _, t := range r.order {
			t.touched = nil
		}
	}()
	// One snapshot for all views; the views are of one database and may refer
	// to one another.
	err := pgx.BeginTxFunc(r.ctx, r.views, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		for _, t := range r.order {
			if err := r.reconcileTable(tx, t); err != nil {
				return fmt.Errorf("reconcile %s with %s: %w", t.Name, t.View, err)
			}
			t.dirty = nil
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.s.metrics.reconcile.Observe(time.Since(began).Seconds())
	return r.mirrorAll(false)
}

// quiesce waits until everything handed out has been acknowledged and read
// back, so that the tail and the account can be compared.
func (r *session) quiesce() error {
	if err := r.await(func() bool { return r.flight.len() == 0 }); err != nil {
		return err
	}
	r.reader.Confirm(r.flight.position())
	admin := kadm.NewClient(r.kafka)
	for _, t := range r.order {
		name := r.s.deps.Stream.Topic(t.Name)
		ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
		ends, err := admin.ListEndOffsets(ctx, name)
		cancel()
		if err != nil {
			return fmt.Errorf("kafka: end of %s: %w", name, err)
		}
		end, ok := ends.Lookup(name, 0)
		if !ok || end.Err != nil {
			return fmt.Errorf("kafka: end of %s: %w", name, ends.Error())
		}
		if err := r.await(func() bool { return t.tail.follower.Position() >= end.Offset }); err != nil {
			return err
		}
	}
	return nil
}

// reconcileTable publishes every difference. A topic that is ahead of
// Postgres in the same generation mirrors a history that Postgres has lost (a
// restored copy): everything is published again under a new generation.
func (r *session) reconcileTable(tx pgx.Tx, t *table) error {
	live, ahead, err := r.publishDifferences(tx, t)
	if err != nil {
		return err
	}
	if ahead {
		t.generation = max(t.generation, t.account.Generation()) + 1
		r.s.generations[t.Name] = t.generation
		r.s.deps.Log.Error("topic is ahead of its database; a new generation begins", "topic", t.Name, "generation", t.generation)
		if live, _, err = r.publishDifferences(tx, t); err != nil {
			return err
		}
	}
	// Each live row is live in the account now, so equal numbers mean equal
	// sets of keys (a row too large to carry makes them differ for nothing).
	if t.account.Count() == live && len(t.dirty) == 0 && len(t.touched) == 0 {
		return nil
	}
	return r.deleteAbsent(tx, t)
}

// publishDifferences goes through the view once. live counts its live rows.
func (r *session) publishDifferences(tx pgx.Tx, t *table) (live int64, ahead bool, err error) {
	rows, err := tx.Query(r.ctx, `SELECT key, version, payload FROM `+pgx.Identifier{t.View}.Sanitize())
	if err != nil {
		return 0, false, err
	}
	defer rows.Close()
	for n := 1; rows.Next(); n++ {
		if n%drainEvery == 0 {
			if err := r.drain(); err != nil {
				return 0, false, err
			}
		}
		var row outbox.Row
		if err := rows.Scan(&row.Key, &row.Version, &row.Payload); err != nil {
			return 0, false, err
		}
		if row.Payload != nil {
			live++
		}
		switch r.judge(t, &row) {
		case isAhead:
			return live, true, nil
		case isDifferent:
			if err := r.publishDifference(t, &row); err != nil {
				return 0, false, err
			}
		}
	}
	return live, false, rows.Err()
}

// drain carries what the WAL has brought so far.
func (r *session) drain() error {
	for r.flight.len() < maxInFlight {
		select {
		case e := <-r.events:
			if err := r.handle(e); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

func (r *session) publishDifference(t *table, row *outbox.Row) error {
	if err := r.held(); err != nil {
		return err
	}
	if err := r.await(func() bool { return r.flight.len() < maxInFlight }); err != nil {
		return err
	}
	r.s.metrics.differences.WithLabelValues(t.Name).Inc()
	return r.put(t, row)
}

type verdict uint8

const (
	isEqual verdict = iota
	isDifferent
	isAhead // the topic holds what Postgres has yet to reach
)

// judge compares a row of the view with what the topic holds for its key.
func (r *session) judge(t *table, row *outbox.Row) verdict {
	if t.touched[row.Key] {
		return isEqual
	}
	mark, known := t.account.Get(row.Key)
	if !known {
		if row.Payload == nil {
			return isEqual // deleted, and compaction has forgotten even that
		}
		return isDifferent
	}
	if mark.Generation > t.generation || mark.Generation == t.generation && mark.Version > row.Version {
		return isAhead
	}
	want := stream.Mark{Generation: t.generation, Version: row.Version, Live: row.Payload != nil}
	if want.Live {
		want.Digest = stream.Digest(row.Key, row.Version, row.Payload)
	} else if !mark.Live && !t.dirty[row.Key] {
		return isEqual // deleted by whichever record
	}
	if mark == want && !t.dirty[row.Key] {
		return isEqual
	}
	return isDifferent
}

// deleteAbsent publishes deletions of the keys that the view does not have at
// all: rows that were deleted for good while nobody was listening.
func (r *session) deleteAbsent(tx pgx.Tx, t *table) error {
	rows, err := tx.Query(r.ctx, `SELECT key FROM `+pgx.Identifier{t.View}.Sanitize())
	if err != nil {
		return err
	}
	present := map[string]struct{}{}
	var key string
	if _, err := pgx.ForEachRow(rows, []any{&key}, func() error { present[key] = struct{}{}; return nil }); err != nil {
		return err
	}
	var absent []outbox.Row
	t.account.Each(func(key string, mark stream.Mark) bool {
		if _, there := present[key]; !there && !t.touched[key] && (mark.Live || t.dirty[key]) {
			absent = append(absent, deletion(key, mark, t.generation))
		}
		return true
	})
	for i := range absent {
		if err := r.publishDifference(t, &absent[i]); err != nil {
			return err
		}
	}
	return nil
}

// deletion of a key without a row takes the version after the one it deletes:
// newer than that, and not newer than any the key may have when it is made
// again, since that is drawn from the sequence later.
func deletion(key string, mark stream.Mark, generation int64) outbox.Row {
	row := outbox.Row{Message: outbox.Message{Key: key}}
	if mark.Generation == generation {
		row.Version = mark.Version + 1
	}
	return row
}
