package reconcile

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/usagestore"
)

// Sums adds up events: a usagestore.Store.
type Sums interface {
	Totals(ctx context.Context, q usagestore.TotalsQuery) (usagestore.TotalsPage, error)
}

// Sources are the four places. All are required.
type Sources struct {
	Pool      *pgxpool.Pool
	Redis     redis.UniversalClient
	KeyPrefix string
	Usage     Sums
}

// Options say what is compared.
type Options struct {
	// TenantID narrows it to one tenant's counters; empty is all.
	TenantID string
	// EventsSince is from when on the search store keeps every event.
	EventsSince time.Time
	// Wait is the patience: how long counters that differ are looked at again.
	Wait time.Duration
	// Every is the pause between two looks; 0 is a second.
	Every time.Duration
	// Progress is told after each step; nil is not.
	Progress func(step string, counters int)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Report is what was found.
type Report struct {
	// Counters is how many were compared, Unchecked how many of those without
	// their events: they are older than what is kept.
	Counters    int          `json:"counters"`
	Unchecked   int          `json:"unchecked"`
	Differences []Difference `json:"differences"`
}

// Difference is one counter on which two places do not agree.
type Difference struct {
	Counter string `json:"counter"`
	// Between names the two places, such as redis, checkpoint.
	Between [2]string `json:"between"`
	// Have are their numbers, in that order.
	Have [2]Numbers `json:"have"`
	// Cause is the likely one, for people.
	Cause string `json:"cause"`
}

// Numbers are what one place says; those it does not keep are 0.
type Numbers struct {
	Consumed  int64 `json:"consumed,omitempty"`
	Refunded  int64 `json:"refunded,omitempty"`
	Forfeited int64 `json:"forfeited,omitempty"`
	Granted   int64 `json:"granted,omitempty"`
	// Net is consumed − refunded.
	Net int64 `json:"net"`
}
