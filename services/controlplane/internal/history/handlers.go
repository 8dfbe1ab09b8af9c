package history

import (
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

// Handlers answer the operations of this package.
type Handlers struct {
	store  *store.Store
	reader Reader
}

// New makes the handlers.
func New(s *store.Store, reader Reader) *Handlers { return &Handlers{store: s, reader: reader} }
