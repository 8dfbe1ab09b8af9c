package keeper

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

const (
	// settleFor is the least time that gateways have to come forward: more than
	// two of their rounds, for what named them may be lost as well. It is not
	// where a slot has moved: then those are named where it came from.
	settleFor = 1500 * time.Millisecond
	// goneAfter is how long one that was there is waited for.
	goneAfter = 15 * time.Second
	askEvery  = 50 * time.Millisecond
)

var errAnew = errors.New("redis has lost quotas again")

// remember notes which gateways live while a process is whole.
func (r *restorer) remember(ctx context.Context, p redisstore.Process) error {
	asking, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	all, now, err := r.redis.Gateways(asking, p)
	if err != nil {
		return err
	}
	names := living(all, now)
	r.seen[p.String()] = names
	maps.Copy(r.named, names)
	return nil
}

func living(all []redisstore.Gateway, at time.Time) map[string]bool {
	names := map[string]bool{}
	for _, g := range all {
		if at.Sub(g.Seen) <= goneAfter {
			names[g.Name] = true
		}
	}
	return names
}

// awaitGateways waits until every gateway that lived before the loss, or lives
// now, has handed in what it knows, or was not there for goneAfter. What one of
// them knows may be in no event yet: its requests are under way, or it is cut
// off from Kafka. It returns who has handed in.
func (r *restorer) awaitGateways(ctx context.Context, p redisstore.Process) (names []string, err error) {
	began := time.Now()
	awaited := map[string]time.Time{} // and when each was there last, by our clock
	least := settleFor
	if p.Moved {
		least = 0
		for name := range r.named {
			awaited[name] = began
		}
	}
	for name := range r.seen[p.String()] {
		awaited[name] = began
	}
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for first := true; ; first = false {
		all, now, err := r.askGateways(ctx, p)
		if err != nil {
			return nil, err
		}
		if first {
			for name := range living(all, latest(all)) {
				awaited[name] = began // there when Redis was there last
			}
		}
		missing := r.missing(awaited, all, now, p.Marker)
		if len(missing) == 0 && time.Since(began) >= least {
			return handedIn(all, p.Marker), nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

// askGateways also sees to it that the restore is the one that was begun.
func (r *restorer) askGateways(ctx context.Context, p redisstore.Process) ([]redisstore.Gateway, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	processes, err := r.redis.Look(ctx, false)
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, now := range processes {
		if now.String() == p.String() && now.Marker != p.Marker {
			return nil, time.Time{}, errAnew
		}
	}
	return r.redis.Gateways(ctx, p)
}

func handedIn(all []redisstore.Gateway, marker string) (names []string) {
	for _, g := range all {
		if g.Marker == marker {
			names = append(names, g.Name)
		}
	}
	return names
}

func latest(all []redisstore.Gateway) (at time.Time) {
	for _, g := range all {
		if g.Seen.After(at) {
			at = g.Seen
		}
	}
	return at
}

// missing are those still waited for.
func (r *restorer) missing(awaited map[string]time.Time, all []redisstore.Gateway, redisNow time.Time, marker string) (names []string) {
	now := time.Now()
	done := map[string]bool{}
	for _, g := range all {
		if redisNow.Sub(g.Seen) <= 2*time.Second {
			awaited[g.Name] = now
		}
		done[g.Name] = g.Marker == marker
	}
	for name, at := range awaited {
		if !done[name] && now.Sub(at) < goneAfter {
			names = append(names, name)
		}
	}
	return names
}
