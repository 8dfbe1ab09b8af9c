//go:build integration

package controlplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/services/controlplane"
)

// world is a control plane over a database of its own, and a way to look into it.
type world struct {
	*controlplane.Service
	dsn string
	db  *pgx.Conn
}

func newWorld(t *testing.T) world {
	t.Helper()
	return newWorldWith(t, controlplane.Deps{})
}

// newWorldWith takes what else than a pool and a usage store the control plane
// is handed.
func newWorldWith(t *testing.T, deps controlplane.Deps) world {
	t.Helper()
	dsn := servertest.Postgres(t)
	if err := migrate.Up(t.Context(), dsn, "outbox", "controlplane", "keeper", "webhooks", "billing"); err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(context.Background()) })
	return world{newAPIWith(t, dsn, deps, nil), dsn, db}
}

// must does a request and holds its status.
func (w world) must(t *testing.T, status int, r request) *answer {
	t.Helper()
	got := r.do(t, w)
	if got.Code != status {
		t.Fatalf("%s %s answers %d %s, want %d", r.method, r.path, got.Code, got.Body, status)
	}
	return got
}

func (w world) put(t *testing.T, status int, path, etag, body string) *answer {
	t.Helper()
	return w.must(t, status, request{method: "PUT", path: path, body: body, header: map[string]string{"If-Match": etag}})
}

func (w world) delete(t *testing.T, status int, path, etag string) *answer {
	t.Helper()
	return w.must(t, status, request{method: "DELETE", path: path, header: map[string]string{"If-Match": etag}})
}

// mirror is a key of a compacted topic: in the view, or last in the outbox.
type mirror struct {
	version int64
	payload string // "" is a tombstone
}

func (w world) mirrors(t *testing.T, sql string, args ...any) map[string]mirror {
	t.Helper()
	rows, err := w.db.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]mirror{}
	var key string
	var m mirror
	if _, err := pgx.ForEachRow(rows, []any{&key, &m.version, &m.payload}, func() error {
		if out[key].version >= m.version {
			return fmt.Errorf("versions of %q go from %d to %d", key, out[key].version, m.version)
		}
		out[key] = m
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// holdMirror holds that a view shows just what the outbox carried last.
func (w world) holdMirror(t *testing.T, view, topic string) {
	t.Helper()
	shown := w.mirrors(t, `SELECT key, version, coalesce(payload, '') FROM `+view)
	carried := w.mirrors(t, `SELECT key, version, coalesce(payload, '') FROM outbox WHERE topic = $1 ORDER BY id`, topic)
	if len(shown) != len(carried) {
		t.Errorf("%s shows %d keys, the outbox carried %d", view, len(shown), len(carried))
	}
	for key, m := range shown {
		if carried[key] != m {
			t.Errorf("%s shows %q as %+v, the outbox carried %+v", view, key, m, carried[key])
		}
		var doc struct{ Version int64 }
		if m.payload != "" && (json.Unmarshal([]byte(m.payload), &doc) != nil || doc.Version != m.version) {
			t.Errorf("%s: the document of %q holds version %d, the row %d", view, key, doc.Version, m.version)
		}
	}
}

func (w world) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := w.db.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// countsFrom has a table's next row numbered n.
func (w world) countsFrom(t *testing.T, table string, n int64) {
	t.Helper()
	if _, err := w.db.Exec(t.Context(), `SELECT setval(pg_get_serial_sequence($1, 'id'), $2, false)`, table, n); err != nil {
		t.Fatal(err)
	}
}

func rulePath(id string) string { return "/v1/rules/" + url.PathEscape(id) }

func ruleNamed(id string) string {
	quoted, _ := json.Marshal(id) // a string always encodes
	return ruleWith(`"id":"a"`, `"id":`+string(quoted))
}
