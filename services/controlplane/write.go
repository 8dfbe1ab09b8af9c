package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/outbox"
)

// maxDocument bounds a document as it is carried. Kafka refuses records above
// 1,048,588 bytes by default, and jsonb writes a document longer than it came.
const maxDocument = 900 << 10

// write is one change of one row.
type write struct {
	entity
	key   string
	actor string
	cond  precondition
	// build makes the new document for a version, given the live one (nil if
	// none). A nil build deletes. It runs inside the transaction, under the
	// row's lock, must not do I/O, and runs again where the transaction does.
	build func(current []byte, version int64) ([]byte, error)
	// then does what else belongs to the transaction, or refuses it; nil is
	// nothing. It runs again where the transaction does.
	then func(ctx context.Context, tx pgx.Tx, before, after record) error
	// owner is the subscription that writes, empty for a caller.
	owner string
	// dryRun: all is done and judged as ever, under the same locks, and rolled
	// back. A version that was drawn stays drawn, as by a refused write.
	dryRun bool
}

// apply does the write: row, outbox row and audit row in one transaction. It
// returns the row as stored; a *Problem as error says why nothing was done. Of a
// dry run it returns the same, and nothing is stored.
//
// The version is drawn under the row's lock, so that a key's versions commit
// in their order and a consumer that ignores older ones never loses the last.
func (s *store) apply(ctx context.Context, w write) (record, error) {
	var done record
	err := retried(ctx, func() error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			var err error
			if done, err = s.applyIn(ctx, tx, w); err == nil && w.dryRun {
				return errDryRun
			}
			return err
		})
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return record{}, fmt.Errorf("write %s: %w", w.kind, err)
	}
	return done, nil
}

func (s *store) applyIn(ctx context.Context, tx pgx.Tx, w write) (record, error) {
	if w.oneByOne {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('controlplane.' || $1, 0))`, w.table); err != nil {
			return record{}, fmt.Errorf("lock table: %w", err)
		}
	}
	before, err := lock(ctx, tx, w)
	if err != nil {
		return record{}, err
	}
	if p := w.cond.holds(before.version); p != nil {
		return record{}, p
	}
	if err := w.mayChange(before.document); err != nil {
		return record{}, err
	}
	after := record{key: w.key}
	if after.version, err = nextVersion(ctx, tx, w); err != nil {
		return record{}, err
	}
	if w.build != nil {
		if after.document, err = w.build(before.document, after.version); err != nil {
			return record{}, err
		}
	}
	if after.document, err = s.put(ctx, tx, w.entity, after); err != nil {
		return record{}, err
	}
	if w.topic != "" {
		message := outbox.Message{Topic: w.topic, Key: w.key, Payload: after.document, Version: after.version}
		if err := outbox.Append(ctx, tx, message); err != nil {
			return record{}, err
		}
	}
	if err := s.audit(ctx, tx, w, before, after); err != nil || w.then == nil {
		return after, err
	}
	return after, w.then(ctx, tx, before, after)
}

// nextVersion draws the version of a write; w's row is locked.
func nextVersion(ctx context.Context, tx pgx.Tx, w write) (version int64, err error) {
	sql, args := `SELECT nextval('sluice_version')`, []any(nil)
	if w.counted {
		sql, args = `SELECT version + 1 FROM `+w.table+` WHERE key = $1`, []any{w.key}
	}
	if err := tx.QueryRow(ctx, sql, args...).Scan(&version); err != nil {
		return 0, fmt.Errorf("draw version: %w", err)
	}
	return version, nil
}

// lock takes the row's lock and returns its live content, version 0 if there
// is none. To create, it first makes sure that there is a row to lock, as two
// who create the same key must wait for each other too.
func lock(ctx context.Context, tx pgx.Tx, w write) (record, error) {
	if w.cond.create || w.cond.either {
		if _, err := tx.Exec(ctx, `INSERT INTO `+w.table+` (key) VALUES ($1) ON CONFLICT DO NOTHING`, w.key); err != nil {
			return record{}, fmt.Errorf("make row: %w", err)
		}
	}
	r := record{key: w.key}
	var document *string
	err := tx.QueryRow(ctx, `SELECT version, document::text FROM `+w.table+` WHERE key = $1 FOR UPDATE`, w.key).Scan(&r.version, &document)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return record{}, nil
	case err != nil:
		return record{}, fmt.Errorf("lock row: %w", err)
	case document == nil: // soft-deleted, or made just now
		return record{}, nil
	}
	r.document = []byte(*document)
	return r, nil
}

// put stores the row and returns its document as the view will show it: that
// text, byte for byte, is what the outbox must carry.
func (s *store) put(ctx context.Context, tx pgx.Tx, e entity, r record) ([]byte, error) {
	var given, stored *string
	if r.document != nil {
		given = new(string(r.document))
	}
	err := tx.QueryRow(ctx, `UPDATE `+e.table+` SET version = $2, document = $3::jsonb, updated_at = $4 WHERE key = $1 RETURNING document::text`,
		r.key, r.version, given, s.now()).Scan(&stored)
	switch {
	case err != nil:
		return nil, fmt.Errorf("store row: %w", err)
	case stored == nil:
		return nil, nil
	case len(*stored) > maxDocument:
		return nil, newProblem(http.StatusRequestEntityTooLarge, "too-large",
			fmt.Sprintf("the document has %d bytes as it is stored; at most %d can be carried to the gateways", len(*stored), maxDocument))
	}
	return []byte(*stored), nil
}
