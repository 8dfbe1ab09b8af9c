package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"

	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver "pgx"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/sluice-platform/sluice/schemas/postgres"
)

// lockID is the advisory lock all rooms share: outbox comes before the rooms
// that write to it, and two processes must agree on that order.
const lockID = 0x5_1_1C_E

// Up applies the missing migrations of the rooms, in the order given. A room
// is a folder of schemas/postgres; one that does not exist is an error. It is
// safe to call from several processes at once. dsn is a Postgres URL or
// keyword string whose user may create tables.
func Up(ctx context.Context, dsn string, rooms ...string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return fmt.Errorf("open database to migrate: %w", err)
	}
	defer db.Close()
	for _, room := range rooms {
		if err := up(ctx, db, room); err != nil {
			return fmt.Errorf("migrate %s: %w", room, err)
		}
	}
	return nil
}

func up(ctx context.Context, db *sql.DB, room string) error {
	folder, err := fs.Sub(postgres.FS, room)
	if err != nil {
		return err
	}
	// Probed by seconds: two processes that start together wait for one
	// migration, not for goose's default of five seconds a probe.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(lockID), lock.WithLockTimeout(1, 120), lock.WithUnlockTimeout(1, 5))
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, folder,
		goose.WithTableName("goose_"+room),
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}
