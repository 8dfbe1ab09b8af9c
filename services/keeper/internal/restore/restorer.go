package restore

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore"
)

// Times of a restore.
const (
	lookEvery = 250 * time.Millisecond
	// lookThoroughly is how many looks apart all epochs of a Cluster are read.
	lookThoroughly = 20
	lookLimit      = 5 * time.Second
)

// Options of New; all are required.
type Options struct {
	// Redis has the counters, and KeyPrefix begins their keys.
	Redis     redis.UniversalClient
	KeyPrefix string
	// Pool is of a user who may read checkpoints.
	Pool *pgxpool.Pool
	// Unwritten returns what usage.v1 tells and no checkpoint has yet. It brings
	// back what else the events tell of that lies beside the quotas.
	Unwritten  func(ctx context.Context) ([]restore.Known, error)
	Log        *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
}

// Restorer restores quotas. Several may run at once, in other processes.
type Restorer struct {
	o       Options
	metrics *metrics
	redis   *restore.Restorer
	seen    map[string]map[string]bool // by process: gateways that lived when it was whole
	since   map[string]time.Time       // when a process was seen not to be whole
	failed  time.Time                  // when a failure was logged last
	watched bool                       // whether a look has ever found all quotas whole
	last    []restore.Process          // as the last look found them
	every   bool                       // all epochs are to be read: a restore has ended
}

// New returns a restorer; it does not connect.
func New(o Options) *Restorer {
	return &Restorer{
		o: o, metrics: newMetrics(o.Registerer), redis: restore.New(o.Redis, o.KeyPrefix),
		seen: map[string]map[string]bool{}, since: map[string]time.Time{},
	}
}
