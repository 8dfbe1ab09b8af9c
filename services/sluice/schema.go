package sluice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/service"
)

// migrations are the folders of schemas/postgres, outbox first: the rooms'
// tables are written together with it. Any process that needs Postgres brings
// all of them up, so that rooms may start in any order and on any machine.
var migrations = []string{"outbox", "controlplane", "keeper", "billing", "usage", "webhooks"}

// schema is the module that brings the database's schema up, however long
// Postgres takes to come.
type schema struct {
	url service.Secret
	log *slog.Logger
	// up is closed once the schema is there.
	up chan struct{}
	// why is the last attempt's error.
	why atomic.Pointer[error]
}

func newSchema(url service.Secret, log *slog.Logger) *schema {
	return &schema{url: url, log: log, up: make(chan struct{})}
}

// Run migrates, again and again until it is done, and then waits for its end.
func (s *schema) Run(ctx context.Context) error {
	retry := backoff.Backoff{Min: 200 * time.Millisecond, Max: 3 * time.Second}
	for {
		err := migrate.Up(ctx, s.url.Reveal(), migrations...)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		if s.why.Swap(&err) == nil {
			s.log.Warn("postgres cannot be migrated yet, trying again", "error", err)
		}
		if retry.Wait(ctx) != nil {
			return nil
		}
	}
	s.log.Info("postgres has the schema")
	close(s.up)
	<-ctx.Done()
	return nil
}

// Ready returns nil once the schema is there.
func (s *schema) Ready() error {
	select {
	case <-s.up:
		return nil
	default:
	}
	if why := s.why.Load(); why != nil {
		return fmt.Errorf("schema: %w", *why)
	}
	return errors.New("schema: not migrated yet")
}

// after is a room that runs once the schema is there: none of them need know
// that a table may be missing.
type after struct {
	schema *schema
	room   service.Runner
}

// Run waits for the schema, then runs the room.
func (a after) Run(ctx context.Context) error {
	select {
	case <-a.schema.up:
		return a.room.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// Ready is the room's, once it can run at all.
func (a after) Ready() error {
	if a.schema.Ready() != nil {
		return errors.New("waits for the schema in postgres")
	}
	if r, ok := a.room.(service.Readier); ok {
		return r.Ready()
	}
	return nil
}

// AdminRoutes are the room's.
func (a after) AdminRoutes(mux *http.ServeMux) {
	if h, ok := a.room.(service.AdminHandler); ok {
		h.AdminRoutes(mux)
	}
}
