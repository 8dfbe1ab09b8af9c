//go:build integration

package migrate_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/servertest"
)

func TestManyProcessesMigrateAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	dsn := servertest.Postgres(t)
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = migrate.Up(t.Context(), dsn, "outbox") })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
	if err := migrate.Up(t.Context(), dsn, "outbox"); err != nil {
		t.Fatalf("nothing to do: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var version int64
	if err := conn.QueryRow(t.Context(), `SELECT max(version_id) FROM goose_outbox`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	if version < 1 {
		t.Fatalf("version %d", version)
	}
	if _, err := conn.Exec(t.Context(), `SELECT nextval('sluice_version'), count(*) FROM outbox`); err != nil {
		t.Fatal(err)
	}
}

func TestUnknownRoomIsRefusedByName(t *testing.T) {
	t.Parallel()
	err := migrate.Up(t.Context(), servertest.Postgres(t), "cellar")
	if err == nil || !strings.Contains(err.Error(), "migrate cellar") {
		t.Fatalf("err = %v", err)
	}
}
