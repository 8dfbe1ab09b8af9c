package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/bench/fleet"
	"github.com/sluice-platform/sluice/libs/devserver"
)

// stand is what contenders run against.
type stand struct {
	traffic
	dir    string
	redis  *devserver.Redis
	client *redis.Client
}

func newStand(ctx context.Context, t traffic) (s *stand, err error) {
	s = &stand{traffic: t}
	if s.dir, err = os.MkdirTemp("", "sluice-bench-limit"); err != nil {
		return nil, err
	}
	s.redis, err = devserver.StartRedis(ctx, devserver.RedisOptions{Dir: filepath.Join(s.dir, "redis"), AppendOnly: true})
	if err != nil {
		s.close()
		return nil, err
	}
	s.client = redis.NewClient(&redis.Options{Addr: s.redis.Addr()})
	return s, nil
}

func (s *stand) close() {
	if s.redis != nil {
		s.redis.Kill()
	}
	_ = os.RemoveAll(s.dir)
}

// result is a row of a table.
type result struct {
	contender contender
	tally     *tally
	redis     time.Duration // processor time that Redis spent
	used      int64         // race: units of the first rule that are gone
}

// plenty is a limit that no run comes near.
const plenty = 1_000_000_000

// limits are the rules' of a scenario, the widest first. Those of a race come back by less than one unit a second.
func (t traffic) limits(scenario string, rules int) []int64 {
	all := make([]int64, rules)
	for i := range all {
		all[i] = plenty
		if scenario == race {
			all[i] = t.Limit + int64(t.Nodes*t.Workers*t.Asks)
		}
	}
	if scenario == race {
		all[rules-1] = t.Limit
	}
	return all
}

// run is one contender in one scenario, on an empty Redis.
func (s *stand) run(ctx context.Context, c contender, scenario string, rules int) (r result, err error) {
	if err := s.client.FlushAll(ctx).Err(); err != nil {
		return r, fmt.Errorf("empty redis: %w", err)
	}
	n := node{traffic: s.traffic, Contender: c.name, Scenario: scenario, Redis: s.redis.Addr(), Limits: s.limits(scenario, rules)}
	var f fleet.Fleet
	defer func() { f.Kill() }()
	for range s.Nodes {
		process, err := fleet.Start(ctx, n, nil)
		if err != nil {
			return r, err
		}
		f = append(f, process)
	}
	if err := f.Expect(sayReady); err != nil {
		return r, err
	}
	before, err := s.spent(ctx)
	if err != nil {
		return r, err
	}
	if err := s.drive(f, scenario); err != nil {
		return r, err
	}
	r = result{contender: c, tally: new(tally)}
	if err := fleet.Reports(f, r.tally.add); err != nil {
		return r, err
	}
	after, err := s.spent(ctx)
	if err != nil {
		return r, err
	}
	r.redis = after - before
	if scenario == race {
		r.used, err = n.usedUp(ctx)
	}
	return r, err
}

func (n node) usedUp(ctx context.Context) (int64, error) {
	l, err := n.open(ctx)
	if err != nil {
		return 0, err
	}
	return l.used(ctx, racers)
}

// lead is how long requests come before Redis falls silent, and go on when it is back.
const lead = 2 * time.Second

// drive tells the processes what to do.
func (s *stand) drive(f fleet.Fleet, scenario string) error {
	if err := f.Tell(tellGo); err != nil || scenario != silence {
		return err
	}
	<-time.After(lead)
	if err := errors.Join(s.redis.Pause(), f.Tell(tellSilent)); err != nil {
		return err
	}
	<-time.After(s.Silence)
	if err := errors.Join(f.Tell(tellBack), s.redis.Resume()); err != nil {
		return err
	}
	<-time.After(lead)
	return f.Tell(tellEnd)
}

// spent is the processor time of Redis so far.
func (s *stand) spent(ctx context.Context) (sum time.Duration, err error) {
	info, err := s.client.InfoMap(ctx, "cpu").Result()
	if err != nil {
		return 0, fmt.Errorf("ask redis for its processor time: %w", err)
	}
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info["CPU"][field], 64)
		if err != nil {
			return 0, fmt.Errorf("redis says %s %q: %w", field, info["CPU"][field], err)
		}
		sum += time.Duration(seconds * float64(time.Second))
	}
	return sum, nil
}

// ruleCounts are those each scenario runs with.
var ruleCounts = map[string][]int{cost: {1, 3}, rate: {1, 3}, race: {1, 3}, silence: {1}}

// compare runs all contenders, and prints a table for each scenario and number of rules.
func compare(ctx context.Context, o settings) error {
	s, err := newStand(ctx, o.traffic)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Println(machine())
	for _, scenario := range o.scenarios {
		for _, rules := range ruleCounts[scenario] {
			var results []result
			for _, c := range o.contenders {
				fmt.Fprintf(os.Stderr, "%s, %d rules: %s\n", scenario, rules, c.name)
				r, err := s.run(ctx, c, scenario, rules)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", scenario, c.name, err)
				}
				results = append(results, r)
			}
			table(os.Stdout, o.traffic, scenario, rules, results)
		}
	}
	notes(os.Stdout, o.contenders)
	return nil
}
