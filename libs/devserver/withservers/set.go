package withservers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// The variables a test finds its servers by.
const (
	EnvPostgres     = "SLUICE_TEST_POSTGRES_URL"
	EnvRedis        = "SLUICE_TEST_REDIS_ADDR"
	EnvKafka        = "SLUICE_TEST_KAFKA_BROKERS"
	EnvSearch       = "SLUICE_TEST_SEARCH_URL"
	EnvSearchFlavor = "SLUICE_TEST_SEARCH_FLAVOR"
)

// running is one server that was had: its variables, where it came from, how to end it (nil when it is not ours).
type running struct {
	env  []string
	from string
	stop func(context.Context) error
}

// set is the four servers around one command.
type set struct {
	work string

	mu  sync.Mutex
	had []running
}

func newSet(work string) *set { return &set{work: work} }

// kind is one of the four servers and the two ways to start it.
type kind struct {
	name, variable string
	local          func(ctx context.Context, dir string) (running, error)
	docker         func(ctx context.Context) (running, error)
}

var kinds = []kind{
	{"postgres", EnvPostgres, localPostgres, dockerPostgres},
	{"redis", EnvRedis, localRedis, dockerRedis},
	{"kafka", EnvKafka, localKafka, dockerKafka},
	{"search", EnvSearch, localSearch, dockerSearch},
}

// start brings up all that is missing, in parallel, and tells on stderr what came up and in which time.
func (s *set) start(ctx context.Context) error {
	docker := dockerAnswers(ctx)
	group, ctx := errgroup.WithContext(ctx)
	for _, k := range kinds {
		group.Go(func() error {
			begin := time.Now()
			r, err := s.have(ctx, k, docker)
			if err != nil {
				return err
			}
			s.mu.Lock()
			s.had = append(s.had, r)
			s.mu.Unlock()
			fmt.Fprintf(os.Stderr, "with-servers: %-8s %5.1f s  %s  (%s)\n", k.name, time.Since(begin).Seconds(), r.env[0], r.from)
			return nil
		})
	}
	return group.Wait()
}

func (s *set) have(ctx context.Context, k kind, docker bool) (running, error) {
	if given := os.Getenv(k.variable); given != "" {
		return asGiven(k, given), nil
	}
	if docker {
		return k.docker(ctx)
	}
	return k.local(ctx, filepath.Join(s.work, k.name))
}

// asGiven takes a server from outside. A search server without a flavor is taken for Elasticsearch.
func asGiven(k kind, value string) running {
	r := running{env: []string{k.variable + "=" + value}, from: "given"}
	if k.variable == EnvSearch && os.Getenv(EnvSearchFlavor) == "" {
		r.env = append(r.env, EnvSearchFlavor+"=elasticsearch")
	}
	return r
}

func (s *set) env() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, r := range s.had {
		all = append(all, r.env...)
	}
	return all
}

// stop ends what was started here, in parallel. It has its own deadline: the caller's context is mostly done by now.
func (s *set) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	var wait sync.WaitGroup
	for _, r := range s.had {
		if r.stop == nil {
			continue
		}
		wait.Go(func() {
			if err := r.stop(ctx); err != nil {
				fmt.Fprintln(os.Stderr, "with-servers:", err)
			}
		})
	}
	wait.Wait()
	s.had = nil
}

// dockerAnswers says whether a Docker engine is there, not only its client.
func dockerAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}
