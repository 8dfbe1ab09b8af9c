package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/services/keeper/internal/counter"
)

// placeFor is how long gateways have to say what they know of each other's lost
// calls, more than ten of their rounds in a restore; then their units stay.
const placeFor = 3 * time.Second

// placeLimit is how long taking out may take; what is left then stays.
const placeLimit = 15 * time.Second

// settleLost takes out of the restored quotas what calls charged whose answer was
// lost together with Redis, and which are in the totals all the same since others
// saw those. Their requests were not admitted by them.
func (r *restorer) settleLost(ctx context.Context, p redisstore.Process, names []string) error {
	lost, err := r.awaitLostCalls(ctx, p, names)
	if err != nil || lost.None() {
		return err
	}
	placing, cancel := context.WithTimeout(ctx, placeLimit)
	defer cancel()
	all, err := r.redis.Place(placing, p, lost, redisstore.Placing{Expires: counter.Expires, Keep: r.keepPlaced})
	switch {
	case errors.Is(err, redisstore.ErrRestored):
		return nil // whoever seals next finds out by whom
	case err != nil && ctx.Err() == nil && placing.Err() != nil:
		r.deps.Log.Warn("not all calls that were lost together with redis could be looked up in time: their units stay", "cause", err)
	case err != nil:
		return err
	}
	unknown, returned := int64(0), int64(0)
	for _, one := range all {
		if !one.Known {
			unknown += one.Lost.Consumed + one.Lost.Refunded
			continue
		}
		returned += max(one.Found, -one.Found)
	}
	r.metrics.lostUnits.WithLabelValues("returned").Add(float64(returned))
	r.metrics.lostUnits.WithLabelValues("unknown").Add(float64(unknown))
	r.deps.Log.Info("calls were lost together with redis", "quotas", len(all), "returned", returned, "unknown", unknown)
	return nil
}

// awaitLostCalls waits until everybody that handed in has answered all others.
func (r *restorer) awaitLostCalls(ctx context.Context, p redisstore.Process, names []string) (redisstore.LostCalls, error) {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for end := time.Now().Add(placeFor); ; {
		asking, cancel := context.WithTimeout(ctx, lookLimit)
		lost, err := r.redis.LostCalls(asking, p)
		cancel()
		if err != nil || lost.None() || lost.Heard(names) || time.Now().After(end) {
			return lost, err
		}
		select {
		case <-ctx.Done():
			return lost, ctx.Err()
		case <-ticker.C:
		}
	}
}

// A row's metric, limit and time stay those of its newest charge.
const placedSQL = `INSERT INTO checkpoints AS c (counter, tenant, metric, period, consumed, refunded, forfeited, charged_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $7)
ON CONFLICT (counter) DO UPDATE SET
    consumed   = GREATEST(c.consumed, excluded.consumed),
    refunded   = GREATEST(c.refunded, excluded.refunded),
    updated_at = excluded.updated_at`

// keepPlaced has the next restore know what is taken out, too: nobody else does
// before the quota is charged again.
func (r *restorer) keepPlaced(ctx context.Context, k redisstore.Known) error {
	_, err := r.deps.Pool.Exec(ctx, placedSQL, k.Counter, counter.Tenant(k.Counter), counter.Metric(k.Counter), counter.Period(k.Counter), k.Consumed, k.Refunded, r.deps.Now())
	if err != nil {
		return fmt.Errorf("write what lost calls had charged: %w", err)
	}
	return nil
}
