package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// maxAttempts bounds how often a transaction is tried. Of those in a
	// deadlock Postgres ends one, and the others go on: the next attempt meets
	// what they left.
	maxAttempts = 5
	// retryPause is the longest pause before the second attempt; it doubles.
	retryPause = 20 * time.Millisecond
)

// Retried runs a transaction, and runs it again where Postgres rolled it back
// for the sake of another one. Nothing of such an attempt is left. It gives up
// with ctx: the error then is the last attempt's.
func Retried(ctx context.Context, transaction func() error) error {
	for attempt, pause := 1, retryPause; ; attempt, pause = attempt+1, 2*pause {
		err := transaction()
		if attempt == maxAttempts || !rolledBackForAnother(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(pause)): // apart, or they would meet again
		}
	}
}

// rolledBackForAnother tells serialization_failure and deadlock_detected.
func rolledBackForAnother(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}
