package servertest

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/devserver/withservers"
)

// Postgres makes an empty database on the shared server and returns its connection string. The database, its sessions
// and its replication slots are gone after the test. Slots are cluster-wide: their names still have to be unique.
func Postgres(t testing.TB) string {
	t.Helper()
	admin := mustEnv(t, withservers.EnvPostgres)
	name := unique()
	if err := adminDo(t.Context(), admin, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("make database %s: %v", name, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
		defer cancel()
		if err := dropDatabase(ctx, admin, name); err != nil {
			t.Errorf("drop database %s: %v", name, err)
		}
	})
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatalf("%s: %v", withservers.EnvPostgres, err)
	}
	u.Path = "/" + name
	return u.String()
}

func adminDo(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}

// dropDatabase drops the slots first: a database that has one cannot be dropped, not even WITH (FORCE).
func dropDatabase(ctx context.Context, admin, name string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		left, err := dropSlots(ctx, conn, name)
		if err != nil {
			return err
		}
		if left == 0 {
			break
		}
	}
	_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
	return err
}

// dropSlots drops the database's idle slots, ends the sessions of the others, and returns how many were there: a
// session takes a moment to let its slot go, so the caller repeats until none is left.
func dropSlots(ctx context.Context, conn *pgx.Conn, database string) (int, error) {
	const end = `SELECT pg_terminate_backend(active_pid, 1000) FROM pg_replication_slots
		WHERE database = $1 AND active_pid IS NOT NULL`
	if _, err := conn.Exec(ctx, end, database); err != nil {
		return 0, fmt.Errorf("end sessions of slots: %w", err)
	}
	const names = `SELECT slot_name FROM pg_replication_slots WHERE database = $1`
	rows, err := conn.Query(ctx, names, database)
	if err != nil {
		return 0, fmt.Errorf("list slots: %w", err)
	}
	slots, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("list slots: %w", err)
	}
	for _, slot := range slots {
		// The error of a slot that is in use again, or gone, is answered by the next round, which ctx bounds.
		_, _ = conn.Exec(ctx, "SELECT pg_drop_replication_slot($1)", slot)
	}
	return len(slots), ctx.Err()
}
