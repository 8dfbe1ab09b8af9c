package sales

import (
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/resource"
)

// Register adds the operations to a.
func (s *Handlers) Register(a *api.API) {
	resource.Register(a, s.Store, s.customerResource())
	s.registerCustomerList(a)
	s.registerCustomerUse(a)
	s.registerPortalLinks(a)
	resource.Register(a, s.Store, s.planResource())
	s.registerPlanVersions(a)
	s.registerMoves(a)
	s.registerSubscriptions(a)
	s.registerWallets(a)
	s.registerTopUps(a)
	s.registerInvoices(a)
}
