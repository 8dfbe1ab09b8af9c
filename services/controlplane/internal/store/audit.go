package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// AuditEntry says who changed what, when, from what to what.
type AuditEntry struct {
	ID      int64           `json:"id" doc:"Grows with every change."`
	At      time.Time       `json:"at"`
	Actor   string          `json:"actor" doc:"Name of the token that was used."`
	Action  string          `json:"action" enum:"create,update,delete"`
	Kind    string          `json:"kind" enum:"rule,override,service,key,customer,plan,subscription,wallet,webhook,purge"`
	Key     string          `json:"key" doc:"The id of what was changed; of a service its name."`
	Version int64           `json:"version" doc:"The version that the change made."`
	Before  json.RawMessage `json:"before,omitempty" doc:"The document before; absent if it was created."`
	After   json.RawMessage `json:"after,omitempty" doc:"The document after; absent if it was deleted."`
}

// audit records a change in the transaction that makes it; it works out the
// action. A key's hash is taken out here, of every document, so that no caller
// can forget to.
func audit(ctx context.Context, tx pgx.Tx, e AuditEntry) error {
	action := "update"
	switch {
	case e.Before == nil:
		action = "create"
	case e.After == nil:
		action = "delete"
	}
	_, err := tx.Exec(ctx, `INSERT INTO audit (at, actor, action, kind, key, version, before, after)
		VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb - 'sha256', $8::jsonb - 'sha256')`,
		e.At, e.Actor, action, e.Kind, e.Key, e.Version, textOrNull(e.Before), textOrNull(e.After))
	if err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	return nil
}

func textOrNull(document []byte) *string {
	if document == nil {
		return nil
	}
	return new(string(document))
}

// AuditQuery selects entries; zero fields select all.
type AuditQuery struct {
	Kind, Key, Actor string
	From, To         time.Time
	// Before is the id that an earlier page ended with; 1 or more, 0 is the
	// first page.
	Before int64
	Limit  int
}

// AuditLog returns entries, the newest first.
func (s *Store) AuditLog(ctx context.Context, q AuditQuery) ([]AuditEntry, error) {
	sql := `SELECT id, at, actor, action, kind, key, version, before::text, after::text FROM audit WHERE true`
	var args []any
	where := func(condition string, value any) {
		args = append(args, value)
		sql += " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	if q.Kind != "" {
		where("kind =", q.Kind)
	}
	if q.Key != "" {
		where("key =", q.Key)
	}
	if q.Actor != "" {
		where("actor =", q.Actor)
	}
	if !q.From.IsZero() {
		where("at >=", q.From)
	}
	if !q.To.IsZero() {
		where("at <", q.To)
	}
	if q.Before > 0 {
		where("id <", q.Before)
	}
	args = append(args, q.Limit)
	rows, err := s.Pool.Query(ctx, sql+" ORDER BY id DESC LIMIT $"+strconv.Itoa(len(args)), args...)
	if err != nil {
		return nil, fmt.Errorf("read audit: %w", err)
	}
	entries, err := pgx.CollectRows(rows, scanAudit)
	if err != nil {
		return nil, fmt.Errorf("read audit: %w", err)
	}
	return entries, nil
}

func scanAudit(row pgx.CollectableRow) (AuditEntry, error) {
	var e AuditEntry
	var before, after *string
	err := row.Scan(&e.ID, &e.At, &e.Actor, &e.Action, &e.Kind, &e.Key, &e.Version, &before, &after)
	e.At = e.At.UTC()
	if before != nil {
		e.Before = json.RawMessage(*before)
	}
	if after != nil {
		e.After = json.RawMessage(*after)
	}
	return e, err
}
