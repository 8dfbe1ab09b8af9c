package indexer

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/libs/usagestore"
)

// Config configures an indexer.
type Config struct {
	Group         string        `koanf:"group" doc:"Kafka consumer group of the indexers of one deployment."`
	BatchSize     int           `koanf:"batchSize" doc:"Most events that are put into the usage store at once, 1 to 10000."`
	RetentionDays int           `koanf:"retentionDays" doc:"Days that usage events are kept, 1 to 3650; older days are deleted, older events become dead letters."`
	PruneEvery    time.Duration `koanf:"pruneEvery" doc:"How often old days are looked for and deleted."`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Group: "indexer", BatchSize: 1000, RetentionDays: 30, PruneEvery: time.Hour}
}

// Deps are what an indexer uses.
type Deps struct {
	Store  usagestore.Store
	Stream stream.Config
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
		return errors.New("indexer.group is empty")
	case c.BatchSize < 1 || c.BatchSize > 10_000:
		return errors.New("indexer.batchSize must be 1 to 10000")
	case c.RetentionDays < 1 || c.RetentionDays > 3650:
		return errors.New("indexer.retentionDays must be 1 to 3650")
	case c.PruneEvery <= 0:
		return errors.New("indexer.pruneEvery must be positive")
	}
	return nil
}

func (d *Deps) complete() error {
	if d.Store == nil {
		return errors.New("indexer: no usage store given")
	}
	service.Defaults(&d.Log, &d.Registerer, &d.Now)
	return nil
}
