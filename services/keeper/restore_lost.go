package keeper

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

// placeFor is how long gateways have to say what they know of each other's lost
// calls, more than ten of their rounds in a restore; then their units stay.
const placeFor = 3 * time.Second

// settleLost takes out of the restored quotas what calls charged whose answer was
// lost together with Redis, and which are in the totals all the same since others
// saw those. Their requests were not admitted by them.
func (r *restorer) settleLost(ctx context.Context, p redisstore.Process, names []string) error {
	lost, err := r.awaitLostCalls(ctx, p, names)
	if err != nil || lost.None() {
		return err
	}
	placing, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	all, changed, err := r.redis.Place(placing, lost, expires)
	if err != nil {
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
	return r.checkpointPlaced(ctx, changed)
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

const placedSQL = `UPDATE checkpoints SET consumed = GREATEST(consumed, $2), refunded = GREATEST(refunded, $3), updated_at = $4 WHERE counter = $1`

// checkpointPlaced has the next restore know it, too. A counter without a row is
// in no checkpoint at all: the next event of it tells.
func (r *restorer) checkpointPlaced(ctx context.Context, changed []redisstore.Known) error {
	for _, k := range changed {
		if _, err := r.deps.Pool.Exec(ctx, placedSQL, k.Counter, k.Consumed, k.Refunded, r.deps.Now()); err != nil {
			return fmt.Errorf("write what lost calls had charged: %w", err)
		}
	}
	return nil
}
