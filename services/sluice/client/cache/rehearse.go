package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/services/gateway"
	"github.com/sluice-platform/sluice/services/sluice/config"
	"github.com/sluice-platform/sluice/tools/rehearsal"
)

const rehearseLong = `Play the days on which a route's cache is tried, on a copy of its hottest keys, and say which of them
would have stampeded, and what to set.

The keys are the paths that clients asked for most often (--top), counted from the control plane's usage
events, or those of a list (--paths, as of cache warm; a path that stands there twice is asked for twice
as often, so that an access log will do). How long each is fresh, may be stale, takes to load and how
large it is, is what the cache's Redis says of the stored answer; else the route's settings, and
--source-latency. A pattern with wildcards stands for the answers stored under it.

Nothing of the deployment is changed, and the service is not asked. Nodes within this process run the
gateway's cache over keys of their own in the same Redis (redis.cache of --config, or --redis), which are
deleted at the end, and expire by themselves. The service is a stand-in that takes a load's measured time.
TTLs are shortened (--speed-up) so that keys expire; load times and stale limits are as they are.

Scenarios: ` + "%s" + `.
Each is played with a plain cache, which coalesces nothing (whoever misses loads), with the settings of
today, and where readers waited or got errors with those proposed. What is not cached today is a load a read.

Exit status: 0 no key stampeded with the settings of today, 1 some did, 2 it could not be rehearsed,
or nothing of the route is stored although it is cached.`

func rehearseCommand(c *rest.Connection) *cobra.Command {
	var f rehearseFlags
	cmd := &cobra.Command{
		Use: "rehearse --route ROUTE --rate N", Short: "Play a stampede on a copy of a route's keys, and say what to set",
		Long: fmt.Sprintf(rehearseLong, scenarioNames()),
		Args: func(cmd *cobra.Command, args []string) error { return couldNot(command.NoArgs(cmd, args)) },
		Example: "  sluice cache rehearse --route shop --rate 2000\n" +
			"  sluice cache rehearse --route 'shop GET /shop/item/{id}' --rate 500 --since 24h --source-latency 900ms\n" +
			"  awk '{print $7}' access.log | sluice cache rehearse --route shop --paths - --rate 1000 --output json",
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, c) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return couldNot(command.FlagError(cmd, err)) })
	flags := cmd.Flags()
	flags.StringVar(&f.route, "route", "", "a service, or an endpoint of one with a cache of its own: 'SERVICE METHOD /pattern'")
	flags.Float64Var(&f.rate, "rate", 0, "reads a second, of all keys together")
	flags.StringVar(&f.paths, "paths", "", "a list of paths, - for standard input, in place of the usage events")
	flags.IntVar(&f.hottest.top, "top", 100, "so many of the hottest keys, at most 10000: copies of them are kept in Redis")
	flags.DurationVar(&f.hottest.since, "since", time.Hour, "count usage events of this time until now")
	flags.IntVar(&f.hottest.events, "events", 20000, "read so many of the newest usage events at most")
	flags.IntVar(&f.nodes, "nodes", 4, "gateways to play")
	flags.DurationVar(&f.duration, "duration", 2*time.Minute, "of all scenarios together, about")
	flags.Float64Var(&f.speedUp, "speed-up", 0, "divide TTLs by this; 0 is such that half of the keys expire four times a scenario")
	flags.DurationVar(&f.latency, "source-latency", 0, "how long each load takes (default: as measured)")
	flags.Float64Var(&f.slowBy, "slow-by", 5, "how many times as long a slow service takes")
	flags.StringSliceVar(&f.scenarios, "scenario", nil, "only this scenario; may be repeated (default: all)")
	flags.StringVar(&f.redisURL, "redis", "", "redis:// or rediss:// URL of a Redis to rehearse on, in place of redis.cache")
	flags.StringVar(&f.config, "config", "", "YAML file of the gateway's configuration; default $SLUICE_CONFIG, else none")
	flags.StringVarP(&f.output, "output", "o", "table", "table or json")
	return cmd
}

func scenarioNames() string {
	var names []string
	for _, s := range rehearsal.Scenarios() {
		names = append(names, fmt.Sprintf("%s (%s)", s, s.About()))
	}
	return strings.Join(names, ",\n")
}

// check names the flag that no rehearsal could obey.
func (f *rehearseFlags) check() error {
	switch {
	case f.route == "":
		return errors.New("--route must name a service, or 'SERVICE METHOD /pattern'")
	case f.rate == 0:
		return fmt.Errorf("--rate must be given: reads a second, of all keys together, above 0 and at most %d", rehearsal.MaxRate)
	case !(f.rate > 0 && f.rate <= rehearsal.MaxRate): // NaN is neither
		return fmt.Errorf("--rate must be above 0 and at most %d, not %g", rehearsal.MaxRate, f.rate)
	case f.nodes < 2 || f.nodes > 64:
		return fmt.Errorf("--nodes must be 2 to 64, not %d", f.nodes)
	case f.duration < time.Second || f.duration > time.Hour:
		return fmt.Errorf("--duration must be 1s to 1h, not %s", f.duration)
	case !(f.speedUp == 0 || f.speedUp >= 1 && f.speedUp <= 1e9):
		return fmt.Errorf("--speed-up must be 1 to 1e9, or 0, not %g", f.speedUp)
	case !(f.slowBy >= 1 && f.slowBy <= 1000):
		return fmt.Errorf("--slow-by must be 1 to 1000, not %g", f.slowBy)
	case f.latency < 0 || f.latency > time.Minute:
		return fmt.Errorf("--source-latency must be up to 1m, not %s", f.latency)
	case f.output != "table" && f.output != "json":
		return fmt.Errorf("--output must be table or json, not %q", f.output)
	}
	for _, s := range f.scenarios {
		if !slices.Contains(rehearsal.Scenarios(), rehearsal.Scenario(s)) {
			return fmt.Errorf("--scenario must be one of %v, not %q", rehearsal.Scenarios(), s)
		}
	}
	if f.hottest.top > maxRehearsed {
		return fmt.Errorf("--top must be at most %d, not %d", maxRehearsed, f.hottest.top)
	}
	return f.hottest.check()
}

// maxRehearsed bounds the copies in the deployment's own Redis, of up to 64 KiB each, and the time to make them.
const maxRehearsed = 10_000

func (f *rehearseFlags) run(cmd *cobra.Command, c *rest.Connection) error {
	if err := f.check(); err != nil {
		return couldNot(err)
	}
	redis.SetLogger(rehearsal.ClientLog{Log: slog.Default()})
	ctx := cmd.Context()
	stand, err := f.stand()
	if err != nil {
		return couldNot(err)
	}
	route, err := f.routeOf(ctx, c)
	if err != nil {
		return couldNot(err)
	}
	if err := stand.reach(ctx); err != nil {
		return couldNot(err)
	}
	keys, err := f.keys(ctx, c, stand, route, cmd)
	if err != nil {
		return couldNot(err)
	}
	report, err := f.rehearse(ctx, stand, keys, cmd.ErrOrStderr())
	// One that was interrupted tells what it has found.
	if report != nil {
		if printErr := f.print(cmd.OutOrStdout(), report, keys, route, err == nil); printErr != nil {
			return couldNot(printErr)
		}
	}
	if err != nil {
		return couldNot(err)
	}
	if hit := report.Stampeded(rehearsal.Today); len(hit) > 0 {
		return fmt.Errorf("%d of %d keys stampeded with the settings of today, such as %s", len(hit), len(keys), hit[0])
	}
	if route.unseen {
		return couldNot(errUnseen)
	}
	return nil
}

var errUnseen = errors.New("caching is enabled and nothing of the route is stored: whether it is protected cannot be told")

// stand is where it is rehearsed, and the deployment's own cache, which is read
// only.
type stand struct {
	redis   *redis.UniversalOptions
	real    *redis.UniversalOptions // nil: not configured
	prefix  string                  // of real's keys
	gateway gateway.CacheConfig
}

func (f *rehearseFlags) stand() (*stand, error) {
	file := rest.FirstOf(f.config, os.Getenv("SLUICE_CONFIG"))
	loaded, err := config.Load(config.Options{File: file, Environ: os.Environ()})
	if err != nil {
		return nil, err
	}
	s := &stand{gateway: loaded.Config.Gateway.Cache, prefix: loaded.Config.Redis.Cache.KeyPrefix}
	if conn := loaded.Config.Redis.Cache; conn.Given() {
		if s.real, err = conn.Options("redis.cache."); err != nil {
			return nil, err
		}
		s.redis = s.real
	}
	if f.redisURL != "" {
		parsed, err := redis.ParseURL(f.redisURL)
		if err != nil {
			return nil, errors.New("--redis must be redis://[user:password@]host:port[/db], or rediss://") // it may hold a password
		}
		s.redis = &redis.UniversalOptions{
			Addrs: []string{parsed.Addr}, Username: parsed.Username, Password: parsed.Password, DB: parsed.DB, TLSConfig: parsed.TLSConfig,
		}
	}
	if s.redis == nil {
		return nil, errors.New("no Redis to rehearse on: give the gateway's configuration (--config, or redis.cache.addr in the environment), or --redis")
	}
	return s, nil
}

// reach asks the Redis to rehearse on: it is no use to say what else is missing
// while there is none.
func (s *stand) reach(ctx context.Context) error {
	o := *s.redis
	cache.ConfigureRedis(&o, time.Second)
	client := redis.NewUniversalClient(&o)
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("reach the Redis to rehearse on (--redis, else redis.cache): %w", err)
	}
	return nil
}

// rehearse plays, and tells of each run when it ends.
func (f *rehearseFlags) rehearse(ctx context.Context, s *stand, keys []rehearsal.Key, progress io.Writer) (*rehearsal.Report, error) {
	plan := rehearsal.Plan{
		Redis: s.redis, RedisTimeout: s.gateway.RedisTimeout, Keys: keys, Rate: f.rate, Nodes: f.nodes, SpeedUp: f.speedUp, SlowBy: f.slowBy,
		Configure: func(o *rehearsal.Options) { *o = httpcache.FamilyOptions[rehearsal.Value](s.gateway.HTTPOptions()) },
		Progress: func(done, all int, r *rehearsal.Run) {
			w := r.Worst()
			fmt.Fprintf(progress, "%d of at most %d: %s, %s: %d reads, %d loads, at most %d of a key at once, p99 %s\n",
				done, all, r.Scenario, protectionText(r.Protection, r.NotCached(), len(r.Keys)), w.Reads, w.Loads, w.PeakLoads, millis(w.P99))
		},
	}
	for _, name := range f.scenarios {
		if s := rehearsal.Scenario(name); !slices.Contains(plan.Scenarios, s) {
			plan.Scenarios = append(plan.Scenarios, s)
		}
	}
	plan.Each = f.duration / time.Duration(plan.Runs())
	r, err := rehearsal.New(plan)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "%d keys at %g reads a second on %d nodes, %s a run, TTLs divided by %.3g\n", len(keys), f.rate, f.nodes, plan.Each.Round(time.Millisecond), r.SpeedUp())
	return r.Run(ctx)
}

// notRehearsed is an error with the exit status 2: 1 says that keys stampeded.
type notRehearsed struct{ error }

// ExitStatus is the program's.
func (notRehearsed) ExitStatus() int { return 2 }

func (e notRehearsed) Unwrap() error { return e.error }

func couldNot(err error) error {
	if err == nil {
		return nil
	}
	return notRehearsed{err}
}
