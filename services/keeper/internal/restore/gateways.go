package restore

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore"
)

const (
	// atLeast is the least time that gateways have to come forward: more than two
	// of their rounds, for what named them may be lost as well.
	atLeast = 1500 * time.Millisecond
	// goneAfter is how long one that was there is waited for.
	goneAfter = 15 * time.Second
	askEvery  = 50 * time.Millisecond
)

var errAnew = errors.New("redis has lost quotas again")

// remember notes which gateways live while a process is whole.
func (r *Restorer) remember(ctx context.Context, p restore.Process) error {
	asking, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	all, now, err := r.redis.Gateways(asking, p)
	if err != nil {
		return err
	}
	r.seen[p.String()] = living(all, now)
	return nil
}

func living(all []restore.Gateway, at time.Time) map[string]bool {
	names := map[string]bool{}
	for _, g := range all {
		if at.Sub(g.Seen) <= goneAfter {
			names[g.Name] = true
		}
	}
	return names
}

// awaitGateways waits until every gateway that lived before the loss, or lives
// now, has reported what it knows, or was not there for goneAfter. What one of
// them knows may be in no event yet: its requests are under way, or it is cut off
// from Kafka.
func (r *Restorer) awaitGateways(ctx context.Context, p restore.Process) error {
	began := time.Now()
	awaited := map[string]time.Time{} // and when each was there last, by our clock
	for name := range r.seen[p.String()] {
		awaited[name] = began
	}
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for first := true; ; first = false {
		all, now, err := r.askGateways(ctx, p)
		if err != nil {
			return err
		}
		if first {
			for name := range living(all, latest(all)) {
				awaited[name] = began // there when Redis was there last
			}
		}
		if len(missing(awaited, all, now, p.Epoch)) == 0 && time.Since(began) >= atLeast {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// askGateways also sees to it that the restore is the one that was begun.
func (r *Restorer) askGateways(ctx context.Context, p restore.Process) ([]restore.Gateway, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	processes, err := r.redis.Look(ctx, false)
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, now := range processes {
		if now.String() == p.String() && now.Epoch != p.Epoch {
			return nil, time.Time{}, errAnew
		}
	}
	return r.redis.Gateways(ctx, p)
}

func latest(all []restore.Gateway) (at time.Time) {
	for _, g := range all {
		if g.Seen.After(at) {
			at = g.Seen
		}
	}
	return at
}

// missing are those still waited for. It notes in awaited who is there.
func missing(awaited map[string]time.Time, all []restore.Gateway, redisNow time.Time, epoch string) (names []string) {
	now := time.Now()
	done := map[string]bool{}
	for _, g := range all {
		if redisNow.Sub(g.Seen) <= 2*time.Second {
			awaited[g.Name] = now
		}
		done[g.Name] = g.Epoch == epoch
	}
	for name, at := range awaited {
		if !done[name] && now.Sub(at) < goneAfter {
			names = append(names, name)
		}
	}
	return names
}
