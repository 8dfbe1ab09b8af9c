package rules

import (
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

// Handlers answer the operations of this package.
type Handlers struct {
	store  *store.Store
	bounds api.TimeBounds
}

// New makes the handlers. bounds are those of times in rules and overrides.
func New(s *store.Store, bounds api.TimeBounds) *Handlers { return &Handlers{store: s, bounds: bounds} }
