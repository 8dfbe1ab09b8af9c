package keeper

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

// Times of a restore.
const (
	lookEvery = 250 * time.Millisecond
	// lookThoroughly is how many looks apart all markers of a Cluster are read.
	lookThoroughly = 20
	lookLimit      = 5 * time.Second
)

// restorer watches over the markers of the counters' Redis and restores quotas
// where they may have lost units. Several keepers may do so at once: each step
// raises numbers, or is good for one restore only.
type restorer struct {
	cfg     Config
	deps    Deps
	metrics *metrics
	redis   *redisstore.Restorer
	seen    map[string]map[string]bool // by process: gateways that lived when it was whole
	named   map[string]bool            // gateways that live by what is whole at this look
	since   map[string]time.Time       // when a process was seen not to be whole
	told    time.Time                  // when a failure was logged last
	watched bool                       // whether a look has ever found all quotas whole
	watch   *redisstore.Watch
	anew    bool // all markers are to be read: a restore has ended
}

func newRestorer(cfg Config, deps Deps, m *metrics) *restorer {
	redis := redisstore.NewRestorer(deps.Redis, deps.KeyPrefix)
	return &restorer{
		cfg: cfg, deps: deps, metrics: m, redis: redis, watch: redis.Watch(),
		seen: map[string]map[string]bool{}, since: map[string]time.Time{},
	}
}

// run looks until ctx ends. Redis away is waited for.
func (r *restorer) run(ctx context.Context) {
	pause := backoff.Backoff{Min: lookEvery, Max: 2 * time.Second}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for n := 0; ; n++ {
		err := r.look(ctx, n%lookThoroughly == 0)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.tell(err)
			if pause.Wait(ctx) != nil {
				return
			}
		default:
			pause.Reset()
			r.told = time.Time{}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// tellEvery is how often a failure that goes on is logged.
const tellEvery = 10 * time.Second

func (r *restorer) tell(err error) {
	level, now := slog.LevelDebug, time.Now()
	if now.Sub(r.told) >= tellEvery {
		level, r.told = slog.LevelWarn, now
	}
	r.deps.Log.Log(context.Background(), level, "it is not known whether the quotas in redis are whole; trying again", "cause", err)
}

// look reads the markers, and restores what is not whole.
func (r *restorer) look(ctx context.Context, every bool) error {
	looking, cancel := context.WithTimeout(ctx, lookLimit)
	all, err := r.watch.Look(looking, every || r.anew)
	cancel()
	if err != nil {
		return err
	}
	r.anew = false
	var lost []redisstore.Process
	r.named = map[string]bool{}
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

// restore brings a process's quotas up to all that is known of them, and says
// then that they are whole.
func (r *restorer) restore(ctx context.Context, p redisstore.Process) error {
	since, begun := r.since[p.String()]
	if !begun {
		since = time.Now()
		r.since[p.String()] = since
	}
	p, err := r.watch.Begin(ctx, p)
	if err != nil {
		return err
	}
	log := r.deps.Log.With("redis", p.String(), "marker", p.Marker)
	r.announce(log)
	names, err := r.awaitGateways(ctx, p)
	var raised int
	if err == nil {
		raised, err = r.raise(ctx)
	}
	if err == nil {
		err = r.settleLost(ctx, p, names)
	}
	if err == nil {
		err = r.redis.Seal(ctx, p)
	}
	if err != nil {
		if ctx.Err() == nil {
			r.metrics.restoreFailures.Inc()
		}
		return err
	}
	took := time.Since(since)
	r.metrics.restores.Inc()
	r.metrics.restoreSeconds.Observe(took.Seconds())
	r.anew = true
	log.Info("quotas are restored", "took", took.Round(time.Millisecond), "raised", raised)
	return nil
}

// announce tells of a restore: a warning where this keeper saw the quotas whole
// before; at its start, the first one of all included, it only has yet to know.
func (r *restorer) announce(log *slog.Logger) {
	if r.watched {
		log.Warn("redis has lost quotas, is another process than before, or was made a copy of one: restoring them; until then decisions with quotas follow onStoreLoss")
		return
	}
	log.Info("it is not known yet whether the quotas in redis are whole: bringing back what is known of them; until then decisions with quotas follow onStoreLoss")
}
