package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// entity is one kind of row: its name in the audit log, its table and the
// compacted topic that mirrors it, if one does. The names are constants of this
// package, never input, and so may be part of SQL.
type entity struct {
	kind, table, topic string
	// oneByOne: its writes wait for each other. It is for tables whose rows
	// share something unique besides the key: two who exchange it would wait
	// for each other's row, until Postgres after a second ends one of them.
	oneByOne bool
	// owned: subscriptions write rows of it, which nobody else may change.
	owned bool
	// counted: versions are each row's own, 1, 2, 3, and not of the sequence.
	counted bool
}

var (
	ruleEntity     = entity{kind: "rule", table: "rules", topic: rules.Topic, owned: true}
	overrideEntity = entity{kind: "override", table: "overrides", topic: overrides.Topic, owned: true}
	serviceEntity  = entity{kind: "service", table: "catalog", topic: catalog.Topic, oneByOne: true}
	keyEntity      = entity{kind: "key", table: "api_keys", topic: keys.Topic}
	customerEntity = entity{kind: "customer", table: "customers"}
	planEntity     = entity{kind: "plan", table: "plans", counted: true}
	walletEntity   = entity{kind: "wallet", table: "wallets", topic: grants.Topic}

	subscriptionEntity = entity{kind: "subscription", table: "subscriptions"}
	webhookEntity      = entity{kind: "webhook", table: "webhooks"}
)

// record is a live row. document is the jsonb as Postgres writes it.
type record struct {
	key      string
	version  int64
	document []byte
}

// store reads and writes rows of any entity.
type store struct {
	pool *pgxpool.Pool
	now  func() time.Time
}

// get returns the live row, or a Problem that says there is none.
func (s *store) get(ctx context.Context, e entity, key string) (record, error) {
	r := record{key: key}
	var document string
	err := s.pool.QueryRow(ctx, `SELECT version, document::text FROM `+e.table+` WHERE key = $1 AND document IS NOT NULL`, key).
		Scan(&r.version, &document)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return record{}, notFound()
	case err != nil:
		return record{}, fmt.Errorf("read %s: %w", e.kind, err)
	}
	r.document = []byte(document)
	return r, nil
}

// filter narrows a list: a condition on document, with %d for the number of
// its argument. An empty value is no filter.
type filter struct{ where, value string }

// list returns up to limit live rows after a key, in byte order of their keys.
func (s *store) list(ctx context.Context, e entity, filters []filter, after string, limit int) ([]record, error) {
	sql := `SELECT key, version, document::text FROM ` + e.table + ` WHERE document IS NOT NULL AND key > $1`
	args := []any{after}
	for _, f := range filters {
		if f.value != "" {
			args = append(args, f.value)
			sql += fmt.Sprintf(" AND ("+f.where+")", len(args))
		}
	}
	args = append(args, limit)
	sql += fmt.Sprintf(" ORDER BY key LIMIT $%d", len(args))
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", e.kind, err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (record, error) {
		var r record
		var document string
		err := row.Scan(&r.key, &r.version, &document)
		r.document = []byte(document)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", e.kind, err)
	}
	return found, nil
}
