package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/outbox"
)

// maxDocument bounds a document as it is carried. Kafka refuses records above
// 1,048,588 bytes by default, and jsonb writes a document longer than it came.
const maxDocument = 900 << 10

// Write is one change of one row.
type Write struct {
	Entity
	Key   string
	Actor string
	Cond  api.Precondition
	// Build makes the new document for a version, given the live one (nil if
	// none). A nil Build deletes. It runs inside the transaction, under the
	// row's lock, must not do I/O, and runs again where the transaction does.
	Build func(current []byte, version int64) ([]byte, error)
	// Then does what else belongs to the transaction, or refuses it; nil is
	// nothing. It runs again where the transaction does.
	Then func(ctx context.Context, tx pgx.Tx, before, after Record) error
	// Owner is the subscription that writes, empty for a caller.
	Owner string
	// DryRun: all is done and judged as ever, under the same locks, and rolled
	// back. A version that was drawn stays drawn, as by a refused write.
	DryRun bool
}

// Apply does the write: row, outbox row and audit row in one transaction. It
// returns the row as stored; a *Problem as error says why nothing was done. Of a
// dry run it returns the same, and nothing is stored.
//
// The version is drawn under the row's lock, so that a key's versions commit
// in their order and a consumer that ignores older ones never loses the last.
func (s *Store) Apply(ctx context.Context, w Write) (Record, error) {
	var done Record
	err := Retried(ctx, func() error {
		return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
			var err error
			if done, err = s.ApplyIn(ctx, tx, w); err == nil && w.DryRun {
				return errDryRun
			}
			return err
		})
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return Record{}, fmt.Errorf("write %s: %w", w.Kind, err)
	}
	return done, nil
}

// ApplyIn is Apply in a transaction of the caller's, who retries and rolls back.
func (s *Store) ApplyIn(ctx context.Context, tx pgx.Tx, w Write) (Record, error) {
	if w.OneByOne {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('controlplane.' || $1, 0))`, w.Table); err != nil {
			return Record{}, fmt.Errorf("lock table: %w", err)
		}
	}
	before, err := lock(ctx, tx, w)
	if err != nil {
		return Record{}, err
	}
	if p := w.Cond.Holds(before.Version); p != nil {
		return Record{}, p
	}
	if err := mayChange(w.Entity, w.Key, w.Owner, before.Document); err != nil {
		return Record{}, err
	}
	after := Record{Key: w.Key}
	if after.Version, err = nextVersion(ctx, tx, w); err != nil {
		return Record{}, err
	}
	if w.Build != nil {
		if after.Document, err = w.Build(before.Document, after.Version); err != nil {
			return Record{}, err
		}
	}
	if after.Document, err = s.put(ctx, tx, w.Entity, after); err != nil {
		return Record{}, err
	}
	if w.Topic != "" {
		message := outbox.Message{Topic: w.Topic, Key: w.Key, Payload: after.Document, Version: after.Version}
		if err := outbox.Append(ctx, tx, message); err != nil {
			return Record{}, err
		}
	}
	if err := audit(ctx, tx, AuditEntry{At: s.Now(), Actor: w.Actor, Kind: w.Kind, Key: w.Key, Version: after.Version, Before: before.Document, After: after.Document}); err != nil || w.Then == nil {
		return after, err
	}
	return after, w.Then(ctx, tx, before, after)
}

// nextVersion draws the version of a write; w's row is locked.
func nextVersion(ctx context.Context, tx pgx.Tx, w Write) (version int64, err error) {
	sql, args := `SELECT nextval('sluice_version')`, []any(nil)
	if w.Counted {
		sql, args = `SELECT version + 1 FROM `+w.Table+` WHERE key = $1`, []any{w.Key}
	}
	if err := tx.QueryRow(ctx, sql, args...).Scan(&version); err != nil {
		return 0, fmt.Errorf("draw version: %w", err)
	}
	return version, nil
}

// errDryRun ends the transaction of a dry run in which nothing was refused.
var errDryRun = errors.New("dry run")

// lock takes the row's lock and returns its live content, version 0 if there
// is none. To create, it first makes sure that there is a row to lock, as two
// who create the same key must wait for each other too.
func lock(ctx context.Context, tx pgx.Tx, w Write) (Record, error) {
	if w.Cond.Create || w.Cond.Either {
		if _, err := tx.Exec(ctx, `INSERT INTO `+w.Table+` (key) VALUES ($1) ON CONFLICT DO NOTHING`, w.Key); err != nil {
			return Record{}, fmt.Errorf("make row: %w", err)
		}
	}
	r := Record{Key: w.Key}
	var document *string
	err := tx.QueryRow(ctx, `SELECT version, document::text FROM `+w.Table+` WHERE key = $1 FOR UPDATE`, w.Key).Scan(&r.Version, &document)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Record{}, nil
	case err != nil:
		return Record{}, fmt.Errorf("lock row: %w", err)
	case document == nil: // soft-deleted, or made just now
		return Record{}, nil
	}
	r.Document = []byte(*document)
	return r, nil
}

// put stores the row and returns its document as the view will show it: that
// text, byte for byte, is what the outbox must carry.
func (s *Store) put(ctx context.Context, tx pgx.Tx, e Entity, r Record) ([]byte, error) {
	var given, stored *string
	if r.Document != nil {
		given = new(string(r.Document))
	}
	err := tx.QueryRow(ctx, `UPDATE `+e.Table+` SET version = $2, document = $3::jsonb, updated_at = $4 WHERE key = $1 RETURNING document::text`,
		r.Key, r.Version, given, s.Now()).Scan(&stored)
	switch {
	case err != nil:
		return nil, fmt.Errorf("store row: %w", err)
	case stored == nil:
		return nil, nil
	case len(*stored) > maxDocument:
		return nil, api.NewProblem(http.StatusRequestEntityTooLarge, "too-large",
			fmt.Sprintf("the document has %d bytes as it is stored; at most %d can be carried to the gateways", len(*stored), maxDocument))
	}
	return []byte(*stored), nil
}
