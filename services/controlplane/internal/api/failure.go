package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/jackc/pgx/v5/pgconn"
)

// retryAfter is what a caller is told while the database is away, in seconds:
// about what a failover takes to begin to matter.
const retryAfter = "2"

// problemOf turns any error of a handler into the problem to answer with, and
// logs what only the operator may see.
func (a *API) problemOf(ctx context.Context, err error) *Problem {
	var p *Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, context.Canceled):
		return Unavailable("the request was given up") // by the client, who does not read this
	}
	if p := refusedByDatabase(err); p != nil {
		return p
	}
	if databaseAway(err) {
		a.cfg.Log.WarnContext(ctx, "database unavailable", "error", err)
		return Unavailable("the database cannot be reached or is too busy; nothing is known to have changed")
	}
	a.cfg.Log.ErrorContext(ctx, "request failed", "error", err)
	return NewProblem(http.StatusInternalServerError, "internal", "an unexpected error; it is in the log")
}

// Unavailable is the answer while something that answers are made of is away.
func Unavailable(detail string) *Problem {
	return NewProblem(http.StatusServiceUnavailable, "unavailable", detail).SetHeader("Retry-After", retryAfter)
}

// refusedByDatabase recognises what validation cannot rule out beforehand,
// and, as a net below it, values that Postgres cannot hold.
func refusedByDatabase(err error) *Problem {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return nil
	}
	switch pg.Code[:2] {
	case "22", "54": // data exception, program limit exceeded
		return NewProblem(http.StatusBadRequest, "invalid", "the request holds a value that cannot be stored: "+Printable(pg.Message))
	}
	return nil
}

// databaseAway tells errors of the way to Postgres, and of Postgres in no
// state to answer, from errors of ours.
func databaseAway(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code[:2] {
		// connection, resources, operator intervention, transaction rollback,
		// read-only or otherwise wrong state (a standby), lock not available.
		case "08", "53", "57", "40", "25", "55":
			return true
		}
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}
