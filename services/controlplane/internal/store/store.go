package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Record is a live row. Document is the jsonb as Postgres writes it.
type Record struct {
	Key      string
	Version  int64
	Document []byte
}

// Store reads and writes rows of any entity.
type Store struct {
	Pool *pgxpool.Pool
	Now  func() time.Time
}

// Get returns the live row, or a Problem that says there is none.
func (s *Store) Get(ctx context.Context, e Entity, key string) (Record, error) {
	r := Record{Key: key}
	var document string
	err := s.Pool.QueryRow(ctx, `SELECT version, document::text FROM `+e.Table+` WHERE key = $1 AND document IS NOT NULL`, key).
		Scan(&r.Version, &document)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Record{}, api.NotFound()
	case err != nil:
		return Record{}, fmt.Errorf("read %s: %w", e.Kind, err)
	}
	r.Document = []byte(document)
	return r, nil
}

// Querier is a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
