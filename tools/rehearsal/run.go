package rehearsal

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// run is one scenario under one protection.
type run struct {
	plan     *Plan
	prefix   string // of its keys in Redis
	scenario Scenario
	settings []Settings // of the keys, as they are rehearsed
	tally    []*keyTally
	source   *source
	fleet    fleet
	began    time.Time
}

// newRun starts the fleet; the caller closes it.
func newRun(p *Plan, prefix string, s Scenario, by Protection, settings []Settings) (*run, error) {
	r := &run{plan: p, prefix: prefix, scenario: s, settings: settings}
	for i := range p.Keys {
		r.tally = append(r.tally, &keyTally{shares: by != Plain && !settings[i].Off})
	}
	r.source = newSource(p.Keys, r.tally)
	if by == Plain {
		r.fleet = newPlain(r)
		return r, nil
	}
	nodes, err := r.newProtected()
	if err != nil {
		return nil, err
	}
	r.fleet = nodes
	return r, nil
}

// play fills the caches, then reads and breaks for Plan.Each.
func (r *run) perform(ctx context.Context) (unsent int, err error) {
	if err := r.fill(ctx); err != nil {
		return 0, err
	}
	for _, t := range r.tally {
		t.count(true)
	}
	t := newTraffic(r.plan, r.fleet, r.tally)
	r.began = time.Now()
	running, end := context.WithDeadline(ctx, r.began.Add(r.plan.Each))
	defer end()
	// Reads may end a little later than the run: what was mended at its end is given time.
	reads, cut := context.WithDeadline(ctx, r.began.Add(r.plan.Each+r.grace()))
	defer cut()
	var playing sync.WaitGroup
	playing.Go(func() { r.play(running) })
	t.send(running, reads)
	playing.Wait()
	t.reading.Wait()
	for _, t := range r.tally {
		t.count(false)
	}
	return t.unsent, ctx.Err()
}

// grace is as long as the slowest key's load.
func (r *run) grace() (longest time.Duration) {
	for _, k := range r.plan.Keys {
		longest = max(longest, k.Latency)
	}
	return longest
}

// fillAtOnce is how many keys are loaded at once before a run.
const fillAtOnce = 64

// fill loads every key once, some at a time.
func (r *run) fill(ctx context.Context) error {
	slots := make(chan struct{}, fillAtOnce)
	errs := make(chan error, len(r.settings))
	var filling sync.WaitGroup
	for key, s := range r.settings {
		if s.Off {
			continue
		}
		slots <- struct{}{}
		filling.Go(func() {
			defer func() { <-slots }()
			if _, err := r.fleet.read(ctx, key); err != nil {
				errs <- err
			}
		})
	}
	filling.Wait()
	select {
	case err := <-errs:
		return fmt.Errorf("fill the copy: %w", err)
	default:
		return nil
	}
}

// result is the run as it is reported.
func (r *run) result(by Protection, unsent int) Run {
	out := Run{Scenario: r.scenario, Protection: by, Unsent: unsent}
	for i, t := range r.tally {
		k := t.result(r.plan.Keys[i].Name, r.scenario.most(r.plan.Nodes))
		k.NotCached = r.settings[i].Off
		out.Keys = append(out.Keys, k)
	}
	return out
}
