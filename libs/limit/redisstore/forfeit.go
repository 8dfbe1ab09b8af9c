package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
	arithmetic "github.com/sluice-platform/sluice/libs/wallet"
	schema "github.com/sluice-platform/sluice/schemas/redis"
)

// Forfeiture is the end of one grant of a wallet.
type Forfeiture struct {
	// Counter is the wallet's identity.
	Counter string
	// ExpiresAt is when the grant ends, and Deadline until when this call may
	// charge: both by Redis's clock.
	ExpiresAt, Deadline time.Time
	// Known are totals that the counter has at the least. Its Forfeited is what
	// all grants forfeited that have ended: exact, not a floor.
	Known Totals
	// Claim is what the grant has left, by use.
	Claim arithmetic.Claim
}

// Outcome is what Redis knew after a Forfeiture.
type Outcome struct {
	// Units are what the grant forfeited; they are charged.
	Units int64
	// Totals are the counter's, and Now is Redis's clock.
	Totals Totals
	Now    time.Time
}

// Errors of Forfeit of which nothing was charged.
var (
	// ErrEarly: by Redis's clock the grant has not expired.
	ErrEarly = errors.New("grant has not expired yet")
	// ErrLate: the deadline had passed when the call came to run.
	ErrLate = errors.New("forfeiture came too late")
	// ErrNotWhole: Redis may have less than was charged. What is left cannot be
	// told before its quotas are restored.
	ErrNotWhole = errors.New("counter is not whole")
)

// Statuses of forfeit.lua.
const (
	forfeitDone = iota
	forfeitBefore
	forfeitEarly
	forfeitLate
	forfeitLost
	forfeitBroken
)

var forfeit = redis.NewScript(schema.Forfeit)

// Forfeit charges what a grant has left, once: it may be called again after any
// error, as long as Known.Forfeited is what it was, and answers the same units.
func Forfeit(ctx context.Context, client redis.UniversalClient, prefix string, f Forfeiture) (Outcome, error) {
	c, r, gone, _ := Keys(prefix, f.Counter)
	answer, err := forfeit.Run(ctx, client, []string{c, r, gone, epoch.KeyFor(client, prefix, c)},
		f.ExpiresAt.UnixMicro(), f.Deadline.UnixMicro(), f.Known.Consumed, f.Known.Refunded, f.Known.Forfeited,
		f.Claim.Top, f.Claim.Left, f.Claim.Bottom, f.Claim.Spent).Slice()
	if err != nil {
		return Outcome{}, fmt.Errorf("forfeit in %s: %w", f.Counter, err)
	}
	n, err := integers(answer)
	if err != nil || len(n) != 6 {
		return Outcome{}, fmt.Errorf("forfeit in %s: answer %v: %w", f.Counter, answer, errors.Join(err, errForeignAnswer))
	}
	out := Outcome{Units: n[5], Totals: Totals{Consumed: n[2], Refunded: n[3], Forfeited: n[4]}, Now: time.UnixMicro(n[1]).UTC()}
	switch n[0] {
	case forfeitDone, forfeitBefore:
		return out, nil
	case forfeitEarly:
		return Outcome{}, ErrEarly
	case forfeitLate:
		return Outcome{}, ErrLate
	case forfeitLost:
		return Outcome{}, fmt.Errorf("forfeit in %s: %w", f.Counter, ErrNotWhole)
	}
	return Outcome{}, fmt.Errorf("forfeit in %s: a key holds something else", f.Counter)
}

var errForeignAnswer = errors.New("not an answer of the script")

func integers(answer []any) ([]int64, error) {
	all := make([]int64, len(answer))
	for i, v := range answer {
		switch v := v.(type) {
		case int64:
			all[i] = v
		case string:
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return nil, err
			}
			all[i] = n
		}
	}
	return all, nil
}
