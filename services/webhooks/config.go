package webhooks

import (
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/libs/webhook"
)

// Config configures the room, and what it has in common with the control
// plane, which makes secrets and tests webhooks.
type Config struct {
	webhook.Config `koanf:",squash"`

	Group      string        `koanf:"group" doc:"Kafka consumer group of the webhooks modules of one deployment."`
	PerWebhook int           `koanf:"perWebhook" doc:"Deliveries under way at once to one webhook, by one process."`
	MinBackoff time.Duration `koanf:"minBackoff" doc:"Longest wait before the second attempt of a delivery; it doubles up to maxBackoff, and each wait is drawn at random from zero to that."`
	MaxBackoff time.Duration `koanf:"maxBackoff" doc:"Longest wait between two attempts of a delivery."`
	PollEvery  time.Duration `koanf:"pollEvery" doc:"How often due deliveries are looked for when nothing else shows that there are some."`
	Keep       time.Duration `koanf:"keep" doc:"How long deliveries, dead ones too, are kept to be looked at; not less than quota-events.v1 keeps its records (720h), or an event that is read again is delivered again."`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Config: webhook.DefaultConfig(), Group: "webhooks", PerWebhook: 4, MinBackoff: 5 * time.Second, MaxBackoff: time.Hour,
		PollEvery: time.Second, Keep: 720 * time.Hour,
	}
}

// Deps are what the room uses.
type Deps struct {
	// Pool reaches a database with the migrations of controlplane and webhooks.
	// It stays the caller's.
	Pool   *pgxpool.Pool
	Stream stream.Config
	// Sender is made of the same configuration; it stays the caller's.
	Sender *webhook.Sender
	// Log, Registerer and Now may be nil.
	Log        *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
}

// Check returns what New would refuse of the configuration, each mistake with
// its key, nil without one.
func (c Config) Check() error {
	if err := c.Config.Check(); err != nil {
		return err
	}
	switch {
	case c.Group == "":
		return errors.New("webhooks.group is empty")
	case c.PerWebhook < 1:
		return errors.New("webhooks.perWebhook must be at least 1")
	case c.MinBackoff <= 0 || c.MaxBackoff < c.MinBackoff:
		return errors.New("webhooks.minBackoff must be positive and webhooks.maxBackoff not less")
	case c.PollEvery <= 0:
		return errors.New("webhooks.pollEvery must be positive")
	case c.Keep <= c.GiveUpAfter:
		return errors.New("webhooks.keep must be more than webhooks.giveUpAfter")
	}
	return nil
}

func (d *Deps) complete() error {
	if d.Pool == nil || d.Sender == nil {
		return errors.New("webhooks: no Postgres pool or no sender given")
	}
	service.Defaults(&d.Log, &d.Registerer, &d.Now)
	return nil
}
