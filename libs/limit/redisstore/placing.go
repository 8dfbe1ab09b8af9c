package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Place finds what lost calls charged of a process's quotas, and takes it out of
// them: what was consumed is refunded, what was given back is consumed, so that
// totals only grow. All that is known must have been raised before, and the
// marker not be sealed yet. It may be done by several keepers at once, and after
// one that died: what is taken out is nobody's loss any more. expires says when
// the keys of a counter's period may go; zero is never.
//
// It returns what came of each quota, and those that it changed.
func (r *Restorer) Place(ctx context.Context, l LostCalls, expires func(counter string) time.Time) (all []Placed, changed []Known, err error) {
	since, _ := questions(l.accounts)
	byText := func(a, b question) int { return strings.Compare(a.String(), b.String()) }
	for _, q := range slices.SortedFunc(maps.Keys(since), byText) {
		read, err := ReadTotals(ctx, r.client, r.prefix, []string{q.counter})
		if err != nil {
			return all, changed, fmt.Errorf("place lost calls: %w", err)
		}
		one := l.place(q, Units{read[0].Consumed, read[0].Refunded})
		if all = append(all, one); one.Found == 0 {
			continue
		}
		k := Known{Counter: q.counter, Expires: expires(q.counter), Totals: Totals{
			Consumed: read[0].Consumed + max(0, -one.Found),
			Refunded: read[0].Refunded + max(0, one.Found),
		}}
		if _, err := r.Raise(ctx, []Known{k}); err != nil {
			return all, changed, err
		}
		changed = append(changed, k)
	}
	return all, changed, nil
}
