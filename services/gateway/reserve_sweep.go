package gateway

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/reserve"
)

// sweepEvery is how often a gateway looks for reservations that are due; up to a
// fifth of it more keeps gateways apart.
const sweepEvery = time.Second

// sweepReservations gives back what nobody brought to an end, until ctx ends. All
// gateways do so; each reservation is given back once.
func (g *gate) sweepReservations(ctx context.Context) error {
	for {
		t := time.NewTimer(sweepEvery + rand.N(sweepEvery/5)) //nolint:gosec // spreads load, guards nothing
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
			g.sweep(ctx)
		}
	}
}

func (g *gate) sweep(ctx context.Context) {
	n, lag, err := g.book.Sweep(ctx)
	g.metrics.reservations[reservationExpired].Add(float64(n))
	switch {
	case err == nil:
		g.metrics.reservationLag.Set(lag.Seconds())
	case ctx.Err() == nil && !errors.Is(err, limit.ErrUnavailable): // that the store is away the breaker says
		g.complain.Say(slog.LevelError, "reservations that are due could not be swept; trying again", "error", err)
	}
}

// openBook ties the book of reservations to the counters.
func (c *counters) openBook(cfg Config, deps Deps, g *gate) (*reserve.Book, error) {
	b, err := reserve.New(reserve.Options{
		Store: c.store, Client: deps.Redis, KeyPrefix: cfg.Store.KeyPrefix, Tell: g.tellReservation, Log: deps.Log,
		MaxOpen: cfg.Reservations.MaxOpen,
	})
	c.book.Store(b)
	return b, err
}
