package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
)

// Page reads one page of live rows, and the cursor of the next.
func (s *Store) Page(ctx context.Context, e Entity, filters []Filter, in api.PageInput) ([]Record, string, error) {
	after, p := api.DecodeCursor(e.Kind, in.Cursor)
	if p != nil {
		return nil, "", p
	}
	records, err := s.List(ctx, e, filters, after, in.Limit+1) // one more tells whether there is a next page
	if err != nil || len(records) <= in.Limit {
		return records, "", err
	}
	records = records[:in.Limit]
	return records, api.EncodeCursor(e.Kind, records[len(records)-1].Key), nil
}

// DecodeAll decodes stored documents; the result is never nil, as it is
// written as a JSON array.
func DecodeAll[T any](records []Record) ([]T, error) {
	items := make([]T, len(records))
	for i, r := range records {
		if err := json.Unmarshal(r.Document, &items[i]); err != nil {
			return nil, fmt.Errorf("decode stored document %q: %w", r.Key, err)
		}
	}
	return items, nil
}

// Filter narrows a list: a condition on document, with %d for the number of
// its argument. An empty value is no filter.
type Filter struct{ Where, Value string }

// List returns up to limit live rows after a key, in byte order of their keys.
func (s *Store) List(ctx context.Context, e Entity, filters []Filter, after string, limit int) ([]Record, error) {
	sql := `SELECT key, version, document::text FROM ` + e.Table + ` WHERE document IS NOT NULL AND key > $1`
	args := []any{after}
	for _, f := range filters {
		if f.Value != "" {
			args = append(args, f.Value)
			sql += fmt.Sprintf(" AND ("+f.Where+")", len(args))
		}
	}
	args = append(args, limit)
	sql += fmt.Sprintf(" ORDER BY key LIMIT $%d", len(args))
	rows, err := s.Pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", e.Kind, err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Record, error) {
		var r Record
		var document string
		err := row.Scan(&r.Key, &r.Version, &document)
		r.Document = []byte(document)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", e.Kind, err)
	}
	return found, nil
}
