package sales

import (
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/history"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

// Deps are what the handlers work with.
type Deps struct {
	Store *store.Store
	Usage history.Reader
	// Redis holds the counters, which are only read here, and the answers to
	// top-ups; nil or away, what is known of counters are keeper's checkpoints.
	// KeyPrefix begins the keys.
	Redis     redis.UniversalClient
	KeyPrefix string
	Portal    Portal
	// Bounds are those of grants' ends.
	Bounds api.TimeBounds
	// RequestTimeout bounds a request, and a transaction of the scheduler.
	RequestTimeout time.Duration
	Log            *slog.Logger
}

// Handlers answer the operations of this package.
type Handlers struct {
	Deps
	answers *answers
}

// New makes the handlers.
func New(d Deps) *Handlers {
	return &Handlers{Deps: d, answers: &answers{redis: d.Redis, prefix: d.KeyPrefix}}
}
