package keeper

import (
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/stream"
)

// Config configures a keeper.
type Config struct {
	Group           string        `koanf:"group" doc:"Kafka consumer group of the keepers of one deployment."`
	CheckpointEvery time.Duration `koanf:"checkpointEvery" doc:"How often the touched counters are written to Postgres; what a restore has to read of usage.v1 grows with it."`
	MaxCounters     int           `koanf:"maxCounters" doc:"Touched counters held in memory while Postgres is away, about 500 bytes each; at the bound reading pauses."`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Group: "keeper", CheckpointEvery: 30 * time.Second, MaxCounters: 500_000}
}

// Deps are what a keeper uses.
type Deps struct {
	// Pool is of a user who may insert into, update and read checkpoints. It
	// stays the caller's.
	Pool   *pgxpool.Pool
	Stream stream.Config
	// Redis has the counters, and KeyPrefix begins their keys; the caller's to
	// close after Run returned.
	Redis     redis.UniversalClient
	KeyPrefix string
	// Log, Registerer and Now may be nil.
	Log        *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
}

// Check returns what New would refuse of the configuration, each mistake with
// its key, nil without one.
func (c Config) Check() error {
	switch {
	case c.Group == "":
		return errors.New("keeper.group is empty")
	case c.CheckpointEvery <= 0:
		return errors.New("keeper.checkpointEvery must be positive")
	case c.MaxCounters <= 0:
		return errors.New("keeper.maxCounters must be positive")
	}
	return nil
}

func (d *Deps) complete() error {
	if d.Pool == nil {
		return errors.New("keeper: no Postgres pool given")
	}
	service.Defaults(&d.Log, &d.Registerer, &d.Now)
	return nil
}
