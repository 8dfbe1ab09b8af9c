package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	source *source
	origin *origin
}

func newStand(ctx context.Context, t traffic) (s *stand, err error) {
	s = &stand{traffic: t, source: new(source)}
	if s.dir, err = os.MkdirTemp("", "sluice-bench-cache"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := os.Chmod(s.dir, 0o755); err != nil { // nginx's workers are another user
		return nil, err
	}
	if s.redis, err = devserver.StartRedis(ctx, devserver.RedisOptions{Dir: filepath.Join(s.dir, "redis")}); err != nil {
		return nil, err
	}
	s.origin, err = startOrigin(s.source, t.Load, t.TTL)
	return s, err
}

func (s *stand) close() {
	if s.origin != nil {
		s.origin.close()
	}
	if s.redis != nil {
		s.redis.Kill()
	}
	_ = os.RemoveAll(s.dir)
}

// result is a row of a table.
type result struct {
	contender   contender
	loads, most int64
	tally       *tally
}

// run is one contender in one scenario, on an empty Redis.
func (s *stand) run(ctx context.Context, c contender, scenario string) (r result, err error) {
	if err := s.flush(ctx); err != nil {
		return r, err
	}
	processes := s.Processes
	if scenario == expiry {
		processes = s.Nodes
	}
	var p proxies
	if c.serve != nil {
		if p, err = c.serve(ctx, s, processes); err != nil {
			return r, err
		}
		defer p.stop()
	}
	var f fleet.Fleet
	defer func() { f.Kill() }()
	for i := range processes {
		n := node{traffic: s.traffic, Contender: c.name, Scenario: scenario, Redis: s.redis.Addr()}
		if c.serve != nil {
			n.Proxy = p.addrs[i]
		}
		process, err := fleet.Start(ctx, n, s.source.hear)
		if err != nil {
			return r, err
		}
		f = append(f, process)
	}
	if err := f.Expect(sayReady); err != nil {
		return r, err
	}
	if scenario == expiry {
		if err := errors.Join(f.Tell("warm"), f.Expect(sayWarmed)); err != nil {
			return r, err
		}
	}
	s.source.reset()
	sum := new(tally)
	if err := errors.Join(f.Hang(), fleet.Reports(f, sum.add)); err != nil {
		return r, err
	}
	// Loads that nobody waits for any more are counted, too, and leave the next contender alone.
	<-time.After(s.Load)
	r = result{contender: c, tally: sum}
	r.loads, r.most = s.source.seen()
	return r, nil
}

func (s *stand) flush(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr()})
	defer client.Close()
	if err := client.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("empty redis: %w", err)
	}
	return nil
}

// compare runs all contenders, and prints a table a scenario.
func compare(ctx context.Context, o settings) error {
	s, err := newStand(ctx, o.traffic)
	if err != nil {
		return err
	}
	defer s.close()
	versions, err := versions(ctx, o.contenders)
	if err != nil {
		return err
	}
	fmt.Println(machine())
	for _, scenario := range o.scenarios {
		var results []result
		for _, c := range o.contenders {
			fmt.Fprintf(os.Stderr, "%s: %s\n", scenario, c.name)
			r, err := s.run(ctx, c, scenario)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", scenario, c.name, err)
			}
			fmt.Fprintf(os.Stderr, "%s: %s\n", scenario, row(r, o.length(scenario)))
			results = append(results, r)
		}
		table(os.Stdout, o.traffic, scenario, results)
	}
	notes(os.Stdout, o.contenders, versions)
	return nil
}
