package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

// ListInput is a list's parameters: a page, and what narrows it.
type ListInput interface {
	Paging() api.PageInput
	Filters() []store.Filter
}

// Plain are the parameters of a list that nothing narrows.
type Plain struct{ api.PageInput }

// Filters returns nil.
func (Plain) Filters() []store.Filter { return nil }

// Reader reads documents of one kind.
type Reader[T any, L ListInput] struct {
	Store  *store.Store
	Entity store.Entity
}

// Get answers with one document.
func (r Reader[T, L]) Get(ctx context.Context, in *struct{ api.KeyInput }) (*api.Document[T], error) {
	found, err := r.Store.Get(ctx, r.Entity, in.ID)
	if err != nil {
		return nil, err
	}
	return Show[T](found)
}

// List answers with a page of documents, by key.
func (r Reader[T, L]) List(ctx context.Context, in *L) (*struct{ Body api.Page[T] }, error) {
	records, next, err := r.Store.Page(ctx, r.Entity, (*in).Filters(), (*in).Paging())
	if err != nil {
		return nil, err
	}
	items, err := store.DecodeAll[T](records)
	return &struct{ Body api.Page[T] }{api.Page[T]{Items: items, Next: next}}, err
}

// Show makes the answer that carries a row's document.
func Show[T any](r store.Record) (*api.Document[T], error) {
	out := &api.Document[T]{ETag: api.ETag(r.Version), Status: http.StatusOK}
	if err := json.Unmarshal(r.Document, &out.Body); err != nil {
		return nil, fmt.Errorf("decode stored document %q: %w", r.Key, err)
	}
	return out, nil
}
