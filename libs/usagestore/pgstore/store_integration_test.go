//go:build integration

package pgstore

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/libs/usagestore/storetest"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

func newStore(t *testing.T) usagestore.Store {
	dsn := servertest.Postgres(t)
	if err := migrate.Up(t.Context(), dsn, "usage"); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return New(pool)
}

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{New: newStore, Refresh: func(*testing.T, usagestore.Store) {}})
}

// Postgres text holds no NUL, which Elasticsearch takes.
func TestTextThatPostgresRefusesIsPermanent(t *testing.T) {
	s := newStore(t)
	bad, good := storetest.Event("acme", 1), storetest.Event("acme", 2)
	bad.UserID = "a\x00b"
	results, err := s.Put(t.Context(), []usage.Event{bad, good})
	if err != nil || results[0].Err == nil || !results[0].Err.Permanent || results[1].Err != nil {
		t.Fatalf("put = %+v, %v", results, err)
	}
}
