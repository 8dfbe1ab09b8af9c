package keeper

import (
	"context"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

// find looks how each process stands: by all of its markers also where a slot of
// a Cluster has moved since the last look. One that moved between processes that
// have lost nothing is whole where it came to, without a restore.
func (r *restorer) find(ctx context.Context, every bool) ([]redisstore.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	all, err := r.redis.Look(ctx, every)
	if err == nil && !every && r.slots != nil && !redisstore.SameSlots(all, r.slots) {
		every = true
		all, err = r.redis.Look(ctx, every)
	}
	if err != nil {
		return nil, err
	}
	if every {
		r.anew = false
		if l := r.redis.Settled(ctx, all); l != nil {
			r.layout = l
		}
	}
	if all, err = r.redis.Adopt(ctx, r.layout, all); err != nil {
		return nil, err
	}
	r.slots = all
	return all, nil
}
