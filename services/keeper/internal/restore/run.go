package restore

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore"
)

// Run looks until ctx ends. Redis, Kafka or Postgres away is waited for.
func (r *Restorer) Run(ctx context.Context) {
	pause := backoff.Backoff{Min: lookEvery, Max: 2 * time.Second}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for n := 0; ; n++ {
		err := r.look(ctx, n%lookThoroughly == 0)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.report(err)
			if pause.Wait(ctx) != nil {
				return
			}
		default:
			pause.Reset()
			r.failed = time.Time{}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// reportEvery is how often a failure that goes on is logged.
const reportEvery = 10 * time.Second

func (r *Restorer) report(err error) {
	level, now := slog.LevelDebug, time.Now()
	if now.Sub(r.failed) >= reportEvery {
		level, r.failed = slog.LevelWarn, now
	}
	r.o.Log.Log(context.Background(), level, "it is not known whether the quotas in redis are whole; trying again", "cause", err)
}

// look reads the epochs, and restores what is not whole. Where slots have changed
// hands since the last look it reads all of them.
func (r *Restorer) look(ctx context.Context, every bool) error {
	all, err := r.processes(ctx, every || r.every)
	if err == nil && !every && !r.every && !restore.SameSlots(all, r.last) {
		all, err = r.processes(ctx, true)
	}
	if err != nil {
		return err
	}
	r.last, r.every = all, false
	var lost []restore.Process
	for _, p := range all {
		if !p.Whole {
			lost = append(lost, p)
			continue
		}
		delete(r.since, p.String())
		if err := r.remember(ctx, p); err != nil {
			return err
		}
	}
	r.metrics.restoring.Set(float64(len(lost)))
	r.watched = r.watched || len(lost) == 0
	for _, p := range lost {
		if err = errors.Join(err, r.restore(ctx, p)); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

func (r *Restorer) processes(ctx context.Context, every bool) ([]restore.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return r.redis.Look(ctx, every)
}

// restore brings a process's quotas up to all that is known of them, and says
// then that they are whole.
func (r *Restorer) restore(ctx context.Context, p restore.Process) error {
	since, begun := r.since[p.String()]
	if !begun {
		since = time.Now()
		r.since[p.String()] = since
	}
	p, err := r.redis.Begin(ctx, p)
	if err != nil {
		return err
	}
	log := r.o.Log.With("redis", p.String(), "epoch", p.Epoch)
	r.announce(log)
	for _, step := range r.Steps() {
		if err := step(ctx, p); err != nil {
			if ctx.Err() == nil {
				r.metrics.failures.Inc()
			}
			return err
		}
	}
	took := time.Since(since)
	r.metrics.restores.Inc()
	r.metrics.seconds.Observe(took.Seconds())
	r.every = true
	log.Info("quotas are restored", "took", took.Round(time.Millisecond))
	return nil
}

// Steps are those of a restore that was begun, in order. Whoever dies after any
// of them leaves the rest to the next look, its own or another keeper's.
func (r *Restorer) Steps() []func(context.Context, restore.Process) error {
	return []func(context.Context, restore.Process) error{r.awaitGateways, r.raise, r.redis.Seal}
}

// announce tells of a restore: a warning where this keeper saw the quotas whole
// before; at its start, the first one of all included, it only has yet to know.
func (r *Restorer) announce(log *slog.Logger) {
	if r.watched {
		log.Warn("redis has lost quotas, is another process than before, was promoted, or got a slot from elsewhere: restoring them; until then decisions with quotas follow onStoreLoss")
		return
	}
	log.Info("it is not known yet whether the quotas in redis are whole: bringing back what is known of them; until then decisions with quotas follow onStoreLoss")
}
