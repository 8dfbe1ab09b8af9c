package history

import (
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
)

// Register adds the operations to a.
func (s *Handlers) Register(a *api.API) {
	s.registerAudit(a)
	s.registerUsage(a)
}
