package relay

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events"
)

// Config configures a relay.
type Config struct {
	Slot           string        `koanf:"slot" doc:"Replication slot; one a deployment, shared by its relays, unique on the Postgres server."`
	Instance       string        `koanf:"instance" doc:"Name of this relay in mirror records; default: host name and a random part."`
	MirrorEvery    time.Duration `koanf:"mirrorEvery" doc:"How often a mirror record is repeated in each compacted topic."`
	ReconcileEvery time.Duration `koanf:"reconcileEvery" doc:"How often each compacted topic is compared with its Postgres view."`
	StandbyEvery   time.Duration `koanf:"standbyEvery" doc:"How often a standby looks whether the slot is free."`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Slot: "sluice_relay", MirrorEvery: time.Second, ReconcileEvery: time.Minute, StandbyEvery: 500 * time.Millisecond}
}

// Deps are what a relay uses.
type Deps struct {
	// DatabaseURL is of a user who may replicate, read the views and read and
	// delete outbox rows.
	DatabaseURL service.Secret
	Stream      stream.Config
	// Topics is events.Topics() where it is nil.
	Topics     []events.Topic
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// Now is time.Now where it is nil.
	Now func() time.Time
}

// Check returns what New would refuse of the configuration, each mistake with
// its key, nil without one.
func (c Config) Check() error {
	if err := outbox.CheckSlotName(c.Slot); err != nil {
		return fmt.Errorf("relay.slot: %w", err)
	}
	if c.MirrorEvery <= 0 || c.ReconcileEvery <= 0 || c.StandbyEvery <= 0 {
		return errors.New("relay.mirrorEvery, relay.reconcileEvery and relay.standbyEvery must be positive")
	}
	return nil
}

func (d *Deps) complete() error {
	if d.Topics == nil {
		topics, err := events.Topics()
		if err != nil {
			return err
		}
		d.Topics = topics
	}
	service.Defaults(&d.Log, &d.Registerer, &d.Now)
	return nil
}

// newInstance is unique, so that a relay can tell its mirror records from
// those of another, or of the process it replaced.
func newInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "relay"
	}
	return host + "-" + rand.Text()[:8]
}
