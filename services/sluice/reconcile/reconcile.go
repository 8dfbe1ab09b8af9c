package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

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
