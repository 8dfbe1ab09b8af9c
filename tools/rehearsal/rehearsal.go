package rehearsal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/cache/keyspace"
)

// Rehearsal plays a plan.
type Rehearsal struct{ plan Plan }

// Prefix begins the name of every key that a rehearsal makes in Redis.
const Prefix = "cache-rehearsal:"

const (
	// longest bounds what is kept in Redis, should the rehearsal be killed.
	longest = 5 * time.Minute
	// cleaning bounds the removal of the keys.
	cleaning = 10 * time.Second
)

// SpeedUp is what TTLs are divided by.
func (h *Rehearsal) SpeedUp() float64 { return h.plan.SpeedUp }

// Run plays every scenario, with a plain cache, with today's settings, and where they can be bettered with those
// proposed. When ctx ends it returns what was found by then, with ctx's error. Its keys are deleted in any case.
func (h *Rehearsal) Run(ctx context.Context) (report *Report, err error) {
	p := &h.plan
	o := *p.Redis
	cache.ConfigureRedis(&o, max(p.RedisTimeout, time.Second))
	client := redis.NewUniversalClient(&o)
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("rehearsal: reach redis: %w", err)
	}
	prefix := Prefix + rand.Text() + ":"
	defer func() {
		// ctx may have ended; the keys go all the same.
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleaning)
		defer cancel()
		if cleanErr := sweep(clean, client, prefix); cleanErr != nil {
			err = errors.Join(err, fmt.Errorf("rehearsal: delete its keys (they expire by themselves): %w", cleanErr))
		}
	}()
	report = &Report{Rate: p.Rate, Nodes: p.Nodes, SpeedUp: p.SpeedUp, Each: Millis(p.Each)}
	today := make([]Settings, len(p.Keys))
	for i, k := range p.Keys {
		today[i] = k.Settings
	}
	for _, by := range []Protection{Plain, Today} {
		if err := h.all(ctx, client, prefix, report, by, today); err != nil {
			return report, err
		}
	}
	if report.Proposal = p.propose(report); report.Proposal == nil {
		return report, nil
	}
	proposed := make([]Settings, len(p.Keys))
	for i := range today {
		proposed[i] = report.Proposal.with(today[i])
	}
	return report, h.all(ctx, client, prefix, report, Proposed, proposed)
}

// all plays every scenario under one protection.
func (h *Rehearsal) all(ctx context.Context, client redis.UniversalClient, prefix string, report *Report, by Protection, settings []Settings) error {
	p := &h.plan
	rehearsed := make([]Settings, len(settings))
	for i, s := range settings {
		rehearsed[i] = p.rehearsed(s, p.Keys[i].Latency, by)
	}
	for _, s := range p.Scenarios {
		if !s.tries(by) {
			continue
		}
		own := fmt.Sprintf("%s%d:", prefix, len(report.Runs))
		// The only key of a cache that would not expire by itself does so if it is there before.
		if err := client.Set(ctx, cache.EpochKey(own, family), 1, 2*longest).Err(); err != nil {
			return fmt.Errorf("rehearsal: begin %s: %w", s, err)
		}
		r, err := newRun(p, own, s, by, rehearsed)
		if err != nil {
			return fmt.Errorf("rehearsal: %s: %w", s, err)
		}
		unsent, err := r.perform(ctx)
		r.fleet.close()
		if err == nil {
			err = kept(ctx, client, own)
		}
		if err != nil {
			return fmt.Errorf("rehearsal: %s: %w", s, err)
		}
		report.Runs = append(report.Runs, r.result(by, unsent))
		p.Progress(len(report.Runs), p.Runs(), &report.Runs[len(report.Runs)-1])
	}
	return nil
}

var errLost = errors.New("redis lost the copy meanwhile: what was seen is of its loss")

// kept reports whether Redis is there with what the run began with: where it went away, keys seem to stampede.
func kept(ctx context.Context, client redis.UniversalClient, prefix string) error {
	// One that the nodes made anew has no end.
	ends, err := client.TTL(ctx, cache.EpochKey(prefix, family)).Result()
	if err == nil && ends <= 0 {
		err = errLost
	}
	return err
}

// rehearsed are a key's settings as a run has them: sped up, but never so much that a value is gone when its load is
// done, and within what a killed rehearsal may leave behind.
func (p *Plan) rehearsed(s Settings, latency time.Duration, by Protection) Settings {
	if s.Off && by == Plain {
		s = Settings{TTL: cmp.Or(s.TTL, usualTTL)} // it shows what a cache alone is worth
	}
	if s.Off {
		return s
	}
	s.TTL = max(time.Duration(float64(s.TTL)/p.SpeedUp), 2*latency, shortest)
	s.TTL, s.StaleWhileRevalidate, s.StaleIfError = min(s.TTL, longest), min(s.StaleWhileRevalidate, longest), min(s.StaleIfError, longest)
	return s
}

// shortest is the least TTL that Redis and timers keep well.
const shortest = 200 * time.Millisecond

// fitting is the factor at which half of the keys expire four times in a run.
func fitting(keys []Key, each time.Duration) float64 {
	var ttls []time.Duration
	for _, k := range keys {
		if !k.Settings.Off {
			ttls = append(ttls, k.Settings.TTL)
		}
	}
	if len(ttls) == 0 {
		ttls = []time.Duration{usualTTL}
	}
	slices.Sort(ttls)
	return max(1, float64(ttls[len(ttls)/2])/(float64(each)/4))
}

// sweep deletes the keys of a rehearsal.
func sweep(ctx context.Context, client redis.UniversalClient, prefix string) error {
	return keyspace.Each(ctx, client, prefix, func(node redis.Cmdable, keys []string) error {
		pipe := node.Pipeline()
		for _, key := range keys {
			pipe.Unlink(ctx, key)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("unlink: %w", err)
		}
		return nil
	})
}
