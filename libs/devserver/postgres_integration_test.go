//go:build integration

package devserver_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
)

func query[T any](ctx context.Context, t *testing.T, url, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var value T
	if err := conn.QueryRow(ctx, sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func TestPostgresKeepsDataAcrossFaults(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := servertest.StartPostgresWith(t, devserver.PostgresOptions{Database: "shop", NoSync: true})
	if level := query[string](ctx, t, server.URL(), "SHOW wal_level"); level != "logical" {
		t.Fatalf("wal_level %s, want logical", level)
	}
	// A slot, and a session that is open when the server is killed: its backend must go too.
	query[string](ctx, t, server.URL(), "SELECT slot_name FROM pg_create_logical_replication_slot('s', 'pgoutput')")
	session, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Exec(ctx, "CREATE TABLE kept (n int)"); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Exec(ctx, "INSERT INTO kept VALUES (1), (2)"); err != nil {
		t.Fatal(err)
	}
	backend := int(session.PgConn().PID())
	server.Kill()
	if processRuns(backend) {
		t.Errorf("backend %d survived Kill", backend)
	}
	if err := server.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if n := query[int](ctx, t, server.URL(), "SELECT count(*) FROM kept"); n != 2 {
		t.Errorf("%d rows after a kill, want 2", n)
	}
	if err := server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if n := query[int](ctx, t, server.URL(), "SELECT count(*) FROM pg_replication_slots"); n != 1 {
		t.Errorf("%d slots after a stop, want 1", n)
	}
}

func TestPausedPostgresAnswersOnlyAfterResume(t *testing.T) {
	t.Parallel()
	server := servertest.StartPostgres(t)
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "SELECT 1")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a backend of a paused server answered: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("after Resume: %v", err)
	}
}

func TestPostgresIgnoresALockWhoseProcessIdIsAnothers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := servertest.StartPostgres(t)
	lock := filepath.Join(server.Dir(), "data", "postmaster.pid")
	raw, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	// The lock of a killed server, with the id of a process that lives: this one.
	_, rest, _ := strings.Cut(string(raw), "\n")
	if err := os.WriteFile(lock, []byte(strconv.Itoa(os.Getpid())+"\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestPostgresDataLiesWhereItsUserCanReachIt(t *testing.T) {
	t.Parallel()
	closed, err := os.MkdirTemp("", "sluice-closed-") // mode 0700, ours
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(closed) })
	want := filepath.Join(closed, "data", "postgres")
	var places []string
	for range 2 {
		pg, err := devserver.StartPostgres(t.Context(), devserver.PostgresOptions{Dir: want, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, pg.Dir())
		dir := pg.Dir()
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := pg.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if places[0] != places[1] {
		t.Errorf("data at %s, then at %s: a second run would not find it", places[0], places[1])
	}
	if elsewhere := places[0] != want; elsewhere != (os.Geteuid() == 0) {
		t.Errorf("data at %s for uid %d, asked for %s", places[0], os.Geteuid(), want)
	}
}

// Deleting the wanted folder, or RemovePostgres, is the end of the data,
// wherever they lie.
func TestPostgresDataEndWithTheirFolder(t *testing.T) {
	t.Parallel()
	closed, err := os.MkdirTemp("", "sluice-closed-") // mode 0700, ours
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(closed) })
	want := filepath.Join(closed, "data", "postgres")
	var discarded []string
	var dir string
	// run starts a server, says whether the table of the run before is there, and makes it.
	run := func() (kept bool) {
		t.Helper()
		pg, err := devserver.StartPostgres(t.Context(), devserver.PostgresOptions{
			Dir: want, NoSync: true, Discarded: func(dir string) { discarded = append(discarded, dir) },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pg.Kill)
		dir = pg.Dir()
		t.Cleanup(func() { _ = os.RemoveAll(pg.Dir()) })
		conn, err := pgx.Connect(t.Context(), pg.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if err := conn.QueryRow(t.Context(), "SELECT to_regclass('kept') IS NOT NULL").Scan(&kept); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS kept ()"); err != nil {
			t.Fatal(err)
		}
		if err := pg.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		return kept
	}
	if run() || !run() || len(discarded) != 0 {
		t.Fatalf("the second run does not have the data of the first; discarded %v", discarded)
	}
	if err := os.RemoveAll(filepath.Join(closed, "data")); err != nil {
		t.Fatal(err)
	}
	if run() {
		t.Error("the data are there though their folder was deleted")
	}
	if told := len(discarded) == 1 && discarded[0] == dir; told != (os.Geteuid() == 0) {
		t.Errorf("told of %v for uid %d, data in %s", discarded, os.Geteuid(), dir)
	}
	deleted, err := devserver.RemovePostgres(t.Context(), want)
	if err != nil || !slices.Contains(deleted, dir) || !slices.Contains(deleted, want) {
		t.Errorf("deleted %v, %v; data in %s", deleted, err, dir)
	}
	if run() {
		t.Error("the data are there though they were deleted")
	}
}
