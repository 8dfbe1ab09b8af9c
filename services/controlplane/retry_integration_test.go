//go:build integration

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

func serviceAt(name, prefix string) string {
	return fmt.Sprintf(`{"name":%q,"prefix":%q,"upstreams":[{"url":"http://127.0.0.1:9000"}]}`, name, prefix)
}

// TestSwappedPrefixesAreNoOutage has many exchange the prefixes of two
// services: each is told of the conflict, or succeeds.
func TestSwappedPrefixesAreNoOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: serviceAt("a", "/a/")})
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: serviceAt("b", "/b/")})
	var all sync.WaitGroup
	for i := range 40 {
		r := request{method: "PUT", path: "/v1/services/a", body: serviceAt("a", "/b/"), header: anyVersion}
		if i%2 == 1 {
			r.path, r.body = "/v1/services/b", serviceAt("b", "/a/")
		}
		all.Go(func() {
			if got := r.do(t, w); got.Code != 200 && got.Code != 409 {
				t.Errorf("%s answers %d %s", r.path, got.Code, got.Body)
			}
		})
	}
	all.Wait()
	w.holdMirror(t, "catalog_v1", catalog.Topic)
}

// TestDeadlockIsTriedAgain has another session, a migration say, end a write
// in a deadlock: it holds what the write needs second, and then asks for what
// the write holds. Postgres ends the one that looks first once both wait, a second
// after it began to: the write, unless this test is slow to go on. Then it is tried
// again.
func TestDeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: serviceAt("a", "/a/")})
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: serviceAt("b", "/b/")})
	for range 10 {
		if got := w.deadlocked(t); got != nil {
			if got.Code != 200 {
				t.Errorf("answers %d %s", got.Code, got.Body)
			}
			return
		}
	}
	t.Error("the other session was ended ten times")
}

// deadlocked returns what the write answers after the deadlock, nil where that ended
// the other session.
func (w *world) deadlocked(t *testing.T) *answer {
	t.Helper()
	tx, err := w.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) // does nothing after the commit
	if _, err := tx.Exec(t.Context(), `UPDATE catalog SET document = jsonb_set(document, '{prefix}', '"/c/"') WHERE key = 'b'`); err != nil {
		t.Fatal(err)
	}
	answered := make(chan *answer, 1)
	go func() {
		answered <- request{method: "PUT", path: "/v1/services/a", body: serviceAt("a", "/b/"), header: anyVersion}.do(t, w)
	}()
	servertest.Eventually(t, 10*time.Second, "the write to wait for the other session", func() bool {
		var waiting bool
		if err := tx.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		return waiting
	})
	_, err = tx.Exec(t.Context(), `SELECT FROM catalog WHERE key = 'a' FOR UPDATE`)
	if err == nil {
		err = tx.Commit(t.Context())
	}
	got := <-answered
	var ended *pgconn.PgError
	switch {
	case errors.As(err, &ended) && ended.Code == "40P01":
		return nil
	case err != nil:
		t.Fatal(err)
	}
	return got
}
