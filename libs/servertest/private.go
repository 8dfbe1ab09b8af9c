package servertest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver"
)

// startLimit is generous: a JVM on two busy cores has taken 30 s.
const startLimit = 2 * time.Minute

// StartRedis starts a Redis of the test's own, without data on disk; StartRedisWith chooses.
func StartRedis(t testing.TB) *devserver.Redis {
	t.Helper()
	return StartRedisWith(t, devserver.RedisOptions{})
}

// StartRedisWith starts a Redis with options. Dir is chosen here when it is empty. The server is stopped after the test.
func StartRedisWith(t testing.TB, o devserver.RedisOptions) *devserver.Redis {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	return started(t, devserver.StartRedis, o)
}

// StartPostgres starts a Postgres of the test's own; StartPostgresWith chooses.
func StartPostgres(t testing.TB) *devserver.Postgres {
	t.Helper()
	return StartPostgresWith(t, devserver.PostgresOptions{NoSync: true})
}

// StartPostgresWith starts a Postgres with options. Dir is chosen here when it is empty: not t.TempDir, which is closed
// to the user that Postgres runs as under root. The server is stopped, its data removed after the test.
func StartPostgresWith(t testing.TB, o devserver.PostgresOptions) *devserver.Postgres {
	t.Helper()
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "sluice-postgres-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
		o.Dir = dir
	}
	return started(t, devserver.StartPostgres, o)
}

// StartKafka starts a broker of the test's own, which takes some seconds; StartKafkaWith chooses.
func StartKafka(t testing.TB) *devserver.Kafka {
	t.Helper()
	return StartKafkaWith(t, devserver.KafkaOptions{})
}

// StartKafkaWith starts a broker with options. Dir is chosen here when it is empty. It is stopped after the test.
func StartKafkaWith(t testing.TB, o devserver.KafkaOptions) *devserver.Kafka {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	return started(t, devserver.StartKafka, o)
}

// StartSearch starts an OpenSearch node of the test's own, which takes some seconds and 400 MB.
func StartSearch(t testing.TB) *devserver.Search {
	t.Helper()
	return started(t, devserver.StartSearch, devserver.SearchOptions{Dir: t.TempDir()})
}

// killer is what ends a server of any kind.
type killer interface{ Kill() }

// started starts a server and kills it after the test: its data is thrown away, a clean stop would only cost time.
func started[O any, S killer](t testing.TB, start func(context.Context, O) (S, error), o O) S {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	s, err := start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}
