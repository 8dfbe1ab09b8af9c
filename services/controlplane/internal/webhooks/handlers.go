package webhooks

import (
	"time"

	"github.com/sluice-platform/sluice/libs/webhook"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

// Handlers answer the operations of this package.
type Handlers struct {
	store          *store.Store
	sender         *webhook.Sender
	requestTimeout time.Duration
}

// New makes the handlers. sender seals secrets and sends test events; a request
// is answered within requestTimeout.
func New(s *store.Store, sender *webhook.Sender, requestTimeout time.Duration) *Handlers {
	return &Handlers{store: s, sender: sender, requestTimeout: requestTimeout}
}
