package billing

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/service"
)

const (
	// leastGrace is far longer than a top-up takes to be written. One that is being
	// written as its period ends would else be on no invoice.
	leastGrace = time.Minute
	mostGrace  = 90 * 24 * time.Hour
)

// Config configures the job.
type Config struct {
	Every time.Duration `koanf:"every" doc:"How often invoices are worked out anew."`
	Grace time.Duration `koanf:"grace" doc:"How long after its period an invoice stays a draft that follows late usage; what comes later is a correction on the next one. 1m to 2160h."`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	// 72 h: as long as a period's counters are kept after its end.
	return Config{Every: time.Minute, Grace: 72 * time.Hour}
}

// Check returns what New would refuse of the configuration, nil without anything.
func (c Config) Check() error {
	switch {
	case c.Every <= 0:
		return errors.New("billing.every must be positive")
	case c.Grace < leastGrace || c.Grace > mostGrace:
		return fmt.Errorf("billing.grace must be 1m to 2160h, a duration with its unit; it is %s", c.Grace)
	}
	return nil
}

// Deps are what the room uses.
type Deps struct {
	// Pool is of a user who may read the tables of controlplane and keeper and
	// write those of billing. It stays the caller's.
	Pool *pgxpool.Pool
	// Log, Registerer and Now may be nil.
	Log        *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
}

func (d *Deps) complete() error {
	if d.Pool == nil {
		return errors.New("billing: no Postgres pool given")
	}
	service.Defaults(&d.Log, &d.Registerer, &d.Now)
	return nil
}
