package controlplane

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

// audit records a write in its own transaction. A key's hash is taken out
// here, of every document, so that no caller can forget to.
func (s *store) audit(ctx context.Context, tx pgx.Tx, w write, before, after record) error {
	action := "update"
	switch {
	case before.document == nil:
		action = "create"
	case after.document == nil:
		action = "delete"
	}
	_, err := tx.Exec(ctx, `INSERT INTO audit (at, actor, action, kind, key, version, before, after)
		VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb - 'sha256', $8::jsonb - 'sha256')`,
		s.now(), w.actor, action, w.kind, w.key, after.version, textOrNull(before.document), textOrNull(after.document))
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

// auditQuery selects entries; zero fields select all.
type auditQuery struct {
	kind, key, actor string
	from, to         time.Time
	// before is the id that an earlier page ended with; 1 or more, 0 is the
	// first page.
	before int64
	limit  int
}

// auditLog returns entries, the newest first.
func (s *store) auditLog(ctx context.Context, q auditQuery) ([]AuditEntry, error) {
	sql := `SELECT id, at, actor, action, kind, key, version, before::text, after::text FROM audit WHERE true`
	var args []any
	where := func(condition string, value any) {
		args = append(args, value)
		sql += " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	if q.kind != "" {
		where("kind =", q.kind)
	}
	if q.key != "" {
		where("key =", q.key)
	}
	if q.actor != "" {
		where("actor =", q.actor)
	}
	if !q.from.IsZero() {
		where("at >=", q.from)
	}
	if !q.to.IsZero() {
		where("at <", q.to)
	}
	if q.before > 0 {
		where("id <", q.before)
	}
	args = append(args, q.limit)
	rows, err := s.pool.Query(ctx, sql+" ORDER BY id DESC LIMIT $"+strconv.Itoa(len(args)), args...)
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
