package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
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

// Run compares. An error means that a place could not be read, and nothing is
// known; differences are in the report.
func Run(ctx context.Context, s Sources, o Options) (Report, error) {
	if s.Pool == nil || s.Redis == nil || s.Usage == nil {
		return Report{}, errors.New("reconcile needs Postgres, Redis and a usage store")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string, int) {}
	}
	r := &run{Sources: s, Options: o}
	counters, err := r.gather(ctx)
	if err != nil {
		return Report{}, err
	}
	report := Report{Counters: len(counters)}
	for _, c := range counters {
		if !r.hasEvents(c) {
			report.Unchecked++
		}
	}
	report.Differences, err = r.settle(ctx, counters)
	return report, err
}

type run struct {
	Sources
	Options
}

// settle looks again at the counters that differ until none does or the
// patience is over.
func (r *run) settle(ctx context.Context, counters map[string]*counter) ([]Difference, error) {
	found := r.differences(counters)
	tick := time.NewTicker(r.Every)
	defer tick.Stop()
	for end := r.Now().Add(r.Wait); len(found) > 0 && r.Now().Before(end); {
		r.Progress("looking again", len(found))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		if err := r.again(ctx, found, counters); err != nil {
			return nil, err
		}
		found = r.differences(counters)
	}
	return found, nil
}

// differences are ordered by counter, so that two reports can be compared.
func (r *run) differences(counters map[string]*counter) []Difference {
	found := []Difference{}
	for _, c := range counters {
		found = append(found, r.compare(c)...)
	}
	slices.SortFunc(found, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Counter, b.Counter), cmp.Compare(a.Between[0]+a.Between[1], b.Between[0]+b.Between[1]))
	})
	return found
}
