package resource

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

// Resource is a kind of document that callers write whole: rules, services.
// L is what its list takes.
type Resource[T any, L ListInput] struct {
	store.Entity
	// Path is the collection's, and Item the singular, for operation ids.
	Path, Item string
	// KeyField is the name of the field that identifies, for messages.
	KeyField string
	ID       func(*T) *string
	Version  func(*T) *int64
	// NewKey makes an id for POST without one; nil refuses that.
	NewKey func() string
	// Derived is the key that follows from the document; nil where callers choose it.
	Derived  func(T) string
	Validate func(T) []api.FieldError
	// Names are those in a document that must not be padded.
	Names     func(T) []api.Name
	Normalize func(T) T
	// Unknown has a better message for a field that is not one, or is nil.
	Unknown func(field string) (message string, ok bool)
	// Carry completes a document with what follows from the live one before it
	// (nil if none); nil is nothing. It runs under the row's lock.
	Carry func(current []byte, doc *T, now time.Time) error
	// Then is what else belongs to the transaction of a write or deletion; nil
	// is nothing.
	Then func(ctx context.Context, tx pgx.Tx, before, after store.Record) error
	// Refused says more of what the database refused, or returns err; nil is
	// nothing.
	Refused func(ctx context.Context, doc T, err error) error
	// Warn finds what is valid and yet likely a mistake in documents, each judged
	// beside the others and beside what is stored; nil finds nothing.
	Warn func(ctx context.Context, q store.Querier, docs []T) ([]api.Warning, error)
	// OwnList: the list is not the plain one, and registered elsewhere.
	OwnList bool
}

// operations are one resource's handlers.
type operations[T any, L ListInput] struct {
	store *store.Store
	Resource[T, L]
}

// complete fills in the key where the body has none.
func (o operations[T, L]) complete(doc *T, key string) {
	given := o.ID(doc)
	switch {
	case *given != "":
	case o.Derived != nil:
		*given = o.Derived(*doc)
	case key != "":
		*given = key
	case o.NewKey != nil:
		*given = o.NewKey()
	}
}
