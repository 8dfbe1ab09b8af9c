//go:build integration

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events"
)

// tableEntry is one record of a gateway's table, as its admin port shows it.
type tableEntry struct {
	Key         string `json:"key"`
	Version     int64  `json:"version"`
	CommittedAt int64  `json:"committedAt"`
	RelayedAt   int64  `json:"relayedAt"`
	AppliedAt   int64  `json:"appliedAt"`
}

type table struct {
	Ready   bool         `json:"ready"`
	Entries []tableEntry `json:"entries"`
}

func (g *gate) table(topic, query string) (table, error) {
	var got table
	resp, err := client.Get("http://" + g.admin + "/debug/gateway/tables/" + topic + query)
	if err != nil {
		return got, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return got, fmt.Errorf("status %d", resp.StatusCode)
	}
	return got, json.NewDecoder(resp.Body).Decode(&got)
}

func (g *gate) entry(t *testing.T, topic, key string) tableEntry {
	t.Helper()
	got, err := g.table(topic, "?key="+url.QueryEscape(key))
	if err != nil || len(got.Entries) != 1 {
		t.Fatalf("%s: entry %s of %s: %+v, %v", g.name, key, topic, got, err)
	}
	return got.Entries[0]
}

// awaitEqual waits until a gateway's tables hold exactly what Postgres holds.
func (s *stack) awaitEqual(g *gate) {
	s.t.Helper()
	var difference string
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%s: %s", g.name, difference)
		}
	}()
	servertest.Eventually(s.t, 90*time.Second, g.name+"'s tables to equal Postgres", func() bool {
		difference = s.difference(g)
		return difference == ""
	})
	g.awaitWhole()
}

// awaitWhole waits until the keeper has said that the quotas in Redis are whole,
// and the gateway has heard of it.
func (g *gate) awaitWhole() {
	g.t.Helper()
	servertest.Eventually(g.t, time.Minute, "the quotas to be whole", func() bool { return g.metric("sluice_store_quotas_whole") == 1 })
}

func (s *stack) awaitEqualAll() {
	s.t.Helper()
	for _, g := range s.gates {
		s.awaitEqual(g)
	}
}

// difference says what first differs between a gateway's tables and Postgres.
func (s *stack) difference(g *gate) string {
	s.t.Helper()
	topics, err := events.Topics()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, topic := range topics {
		if !topic.Compacted {
			continue
		}
		want := s.view(topic.View)
		got, err := g.table(topic.Name, "")
		if err != nil {
			return err.Error()
		}
		for _, e := range got.Entries {
			if version, live := want[e.Key]; !live || version != e.Version {
				return fmt.Sprintf("%s: %s is version %d here, %d in Postgres (0: none)", topic.Name, e.Key, e.Version, version)
			}
			delete(want, e.Key)
		}
		for key, version := range want {
			return fmt.Sprintf("%s: %s, version %d in Postgres, is missing here", topic.Name, key, version)
		}
	}
	return ""
}

// view reads key → version of the live rows.
func (s *stack) view(name string) map[string]int64 {
	s.t.Helper()
	live := map[string]int64{}
	s.database(func(ctx context.Context, db *pgx.Conn) error {
		rows, err := db.Query(ctx, "SELECT key, version FROM "+pgx.Identifier{name}.Sanitize()+" WHERE payload IS NOT NULL")
		if err != nil {
			return err
		}
		var key string
		var version int64
		_, err = pgx.ForEachRow(rows, []any{&key, &version}, func() error { live[key] = version; return nil })
		return err
	})
	return live
}

// awaitCheckpoint waits until keeper has written a tenant's consumed total.
func (s *stack) awaitCheckpoint(tenant, metric string, want int64) {
	s.t.Helper()
	var got int64
	defer func() {
		if s.t.Failed() {
			s.t.Logf("checkpoint of %s/%s: %d", tenant, metric, got)
		}
	}()
	servertest.Eventually(s.t, 30*time.Second, fmt.Sprintf("the checkpoint of %s/%s to be %d", tenant, metric, want), func() bool {
		s.database(func(ctx context.Context, db *pgx.Conn) error {
			return db.QueryRow(ctx, "SELECT coalesce(sum(consumed), 0) FROM checkpoints WHERE tenant = $1 AND metric = $2", tenant, metric).Scan(&got)
		})
		return got == want
	})
}
