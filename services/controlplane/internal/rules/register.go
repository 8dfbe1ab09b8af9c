package rules

import (
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/resource"
)

// Register adds the operations to a.
func (s *Handlers) Register(a *api.API) {
	resource.Register(a, s.store, s.ruleResource())
	resource.Register(a, s.store, s.overrideResource())
	resource.Register(a, s.store, s.serviceResource())
	s.registerKeys(a)
	s.registerPurges(a)
}
