//go:build integration

package servertest_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/devserver/withservers"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// Each test here uses a share inside a subtest, and looks after that, when its cleanup has run, for what it left.

func TestPostgresShareIsDroppedWithItsSlots(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var dsn string
	t.Run("use", func(t *testing.T) {
		dsn = servertest.Postgres(t)
		conn, err := pgx.Connect(ctx, dsn) // left open: the drop must not wait for it
		if err != nil {
			t.Fatal(err)
		}
		slot := "slot_" + conn.Config().Database
		if _, err := conn.Exec(ctx, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", slot); err != nil {
			t.Fatal(err)
		}
	})
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := pgx.Connect(ctx, os.Getenv(withservers.EnvPostgres))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.WithoutCancel(ctx))
	const left = `SELECT (SELECT count(*) FROM pg_database WHERE datname = $1)
		+ (SELECT count(*) FROM pg_replication_slots WHERE database = $1)`
	var n int
	if err := admin.QueryRow(ctx, left, config.Database).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 0 {
		t.Errorf("%d databases and slots are left", n)
	}
}

func TestRedisShareIsEmptied(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var addr, prefix string
	t.Run("use", func(t *testing.T) {
		addr, prefix = servertest.Redis(t)
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		if err := client.Set(ctx, prefix+"k", 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
	})
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	if n := client.Exists(ctx, prefix+"k").Val(); n != 0 {
		t.Error("the key is left")
	}
}

func TestKafkaShareLosesItsTopics(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var topic string
	client := func(brokers []string) *kadm.Client {
		c, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return kadm.NewClient(c)
	}
	var brokers []string
	t.Run("use", func(t *testing.T) {
		var prefix string
		brokers, prefix = servertest.Kafka(t)
		topic = prefix + "rules.v1"
		if _, err := client(brokers).CreateTopic(ctx, 1, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	})
	servertest.Eventually(t, 10*time.Second, "the topic to go", func() bool {
		topics, err := client(brokers).ListTopics(ctx)
		return err == nil && !topics.Has(topic)
	})
}

func TestSearchShareLosesItsIndices(t *testing.T) {
	t.Parallel()
	var share servertest.SearchServer
	t.Run("use", func(t *testing.T) {
		share = servertest.Search(t)
		put(t, share.URL+"/"+share.IndexPrefix+"usage-2026.07.23", `{}`)
		put(t, share.URL+"/_index_template/"+share.IndexPrefix+"usage", `{"index_patterns":["`+share.IndexPrefix+`*"]}`)
	})
	for _, path := range []string{"/_cat/indices", "/_cat/templates"} {
		answer, err := http.Get(share.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		raw, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusOK || strings.Contains(string(raw), share.IndexPrefix) {
			t.Errorf("%s answers %s and holds: %s", path, answer.Status, raw)
		}
	}
}

func put(t *testing.T, url, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(answer.Body)
		t.Fatalf("put %s: %s: %s", url, answer.Status, raw)
	}
}
