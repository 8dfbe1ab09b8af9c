package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
)

// page reads one page of live rows, and the cursor of the next.
func (s *store) page(ctx context.Context, e entity, filters []filter, in PageInput) ([]record, string, error) {
	after, p := decodeCursor(e.kind, in.Cursor)
	if p != nil {
		return nil, "", p
	}
	records, err := s.list(ctx, e, filters, after, in.Limit+1) // one more tells whether there is a next page
	if err != nil || len(records) <= in.Limit {
		return records, "", err
	}
	records = records[:in.Limit]
	return records, encodeCursor(e.kind, records[len(records)-1].key), nil
}

// decodeAll decodes stored documents; the result is never nil, as it is
// written as a JSON array.
func decodeAll[T any](records []record) ([]T, error) {
	items := make([]T, len(records))
	for i, r := range records {
		if err := json.Unmarshal(r.document, &items[i]); err != nil {
			return nil, fmt.Errorf("decode stored document %q: %w", r.key, err)
		}
	}
	return items, nil
}

// delete soft-deletes the row of w under its precondition.
func (s *Service) delete(ctx context.Context, w write, in MatchInput) error {
	cond, p := parsePrecondition(in.IfMatch, in.IfNoneMatch, false)
	if p != nil {
		return p
	}
	w.actor, w.cond = callOf(ctx).who.name, cond
	_, err := s.store.apply(ctx, w)
	return err
}
