package keeper

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/outbox"
)

// armingsPerRound bounds one question to Postgres and one transaction.
const armingsPerRound = 200

// thresholdRow is a row of thresholds to be written.
type thresholdRow struct {
	*sighting
	point
	announce *crossing // nil: it is only armed
}

func (r thresholdRow) used() int64 {
	return r.announce.consumed - r.announce.refunded + r.announce.forfeited
}

// settle brings everything that waits into Postgres: rows, and the messages
// that announce them, in one transaction a round. What fails waits on.
func (t *thresholds) settle(ctx context.Context) error {
	select {
	case t.settling <- struct{}{}:
		defer func() { <-t.settling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	waiting := slices.Collect(maps.Values(t.watch.take()))
	slices.SortFunc(waiting, func(a, b *sighting) int {
		return cmp.Or(cmp.Compare(a.counter, b.counter), cmp.Compare(a.arming.limit, b.arming.limit), cmp.Compare(a.list, b.list))
	})
	for len(waiting) > 0 {
		round := waiting[:min(len(waiting), armingsPerRound)]
		if err := t.round(ctx, round); err != nil {
			t.watch.giveBack(waiting)
			t.metrics.failures.Inc()
			return fmt.Errorf("settle thresholds: %w", err)
		}
		waiting = waiting[len(round):]
	}
	return nil
}

// round decides what follows from sightings, writes it, and only then marks
// them as settled.
func (t *thresholds) round(ctx context.Context, sightings []*sighting) error {
	state, err := t.read(ctx, sightings)
	if err != nil {
		return err
	}
	var rows []thresholdRow
	outcomes := make([]outcome, len(sightings))
	for i, s := range sightings {
		outcomes[i] = outcome{quiet: everything}
		for _, g := range s.glimpses {
			k := state.of(s.arming, g.point)
			v := g.judge(k)
			outcomes[i].note(g, k, v)
			if v.announce != nil || v.arm {
				rows = append(rows, thresholdRow{s, g.point, v.announce})
			}
		}
	}
	if len(rows) > 0 {
		if err := t.write(ctx, rows); err != nil {
			return err
		}
	}
	for i, s := range sightings {
		t.watch.settled(s.arming, outcomes[i].quiet, outcomes[i].announced)
	}
	return nil
}

// outcome is what is known of an arming once its rows are written.
type outcome struct {
	quiet     int64
	announced bool
}

func (o *outcome) note(g glimpse, k known, v verdict) {
	switch {
	case v.announce != nil:
		o.announced = true
	case v.covered:
		o.quiet = 0
	case !k.reached:
		o.quiet = min(o.quiet, g.at)
	}
}

// settledState is what Postgres says of some counters: by counter and
// threshold, the armings and whether each is reached.
type settledState map[[2]string]map[string]bool

func (t *thresholds) read(ctx context.Context, sightings []*sighting) (settledState, error) {
	counters := make([]string, len(sightings))
	for i, s := range sightings {
		counters[i] = s.counter
	}
	rows, err := t.deps.Pool.Query(ctx, `SELECT counter, threshold, arming, reached FROM thresholds WHERE counter = ANY($1)`, slices.Compact(counters))
	if err != nil {
		return nil, fmt.Errorf("read thresholds: %w", err)
	}
	state := settledState{}
	var counter, threshold, arming string
	var reached bool
	_, err = pgx.ForEachRow(rows, []any{&counter, &threshold, &arming, &reached}, func() error {
		key := [2]string{counter, threshold}
		if state[key] == nil {
			state[key] = map[string]bool{}
		}
		state[key][arming] = reached
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read thresholds: %w", err)
	}
	return state, nil
}

func (s settledState) of(a arming, p point) (k known) {
	for name, reached := range s[[2]string{a.counter, p.name()}] {
		switch {
		case name != a.name():
			k.elsewhere = k.elsewhere || reached
		case reached:
			k.reached = true
		default:
			k.armed = true
		}
	}
	return k
}

// A row that another keeper has written meanwhile stays, and is not announced
// again: only rows that came to be reached here are returned.
const reachSQL = `INSERT INTO thresholds AS t (counter, threshold, arming, reached, event_id, used, at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bool[], $5::uuid[], $6::bigint[], $7::timestamptz[])
ON CONFLICT (counter, threshold, arming) DO UPDATE SET
    reached = true, event_id = excluded.event_id, used = excluded.used, at = excluded.at
WHERE excluded.reached AND NOT t.reached
RETURNING counter, threshold, arming, reached`

// write stores the rows, each counter's lowest threshold first, and announces
// those that are new. Keepers write in one order, so they cannot deadlock.
func (t *thresholds) write(ctx context.Context, rows []thresholdRow) error {
	slices.SortStableFunc(rows, func(a, b thresholdRow) int {
		return cmp.Or(cmp.Compare(a.counter, b.counter), cmp.Compare(a.point.at, b.point.at),
			cmp.Compare(a.point.name(), b.point.name()), cmp.Compare(a.arming.limit, b.arming.limit), announcedFirst(a, b))
	})
	rows = slices.CompactFunc(rows, sameRow)
	var published int
	err := pgx.BeginFunc(ctx, t.deps.Pool, func(tx pgx.Tx) error {
		fresh, err := t.reach(ctx, tx, rows)
		if err != nil {
			return err
		}
		published = len(fresh)
		return t.announce(ctx, tx, fresh)
	})
	if err == nil {
		t.metrics.reached.Add(float64(published))
	}
	return err
}

// sameRow tells rows of two lists of thresholds that share one: one statement
// must not write a row twice.
func sameRow(a, b thresholdRow) bool {
	return a.counter == b.counter && a.arming.limit == b.arming.limit && a.point == b.point
}

// announcedFirst orders such rows by what says more.
func announcedFirst(a, b thresholdRow) int {
	switch {
	case (a.announce == nil) == (b.announce == nil):
		return 0
	case a.announce != nil:
		return -1
	}
	return 1
}

// reach inserts rows and returns those that were not reached before.
func (t *thresholds) reach(ctx context.Context, tx pgx.Tx, rows []thresholdRow) ([]thresholdRow, error) {
	c := newColumns(len(rows))
	for _, r := range rows {
		c.add(r, t.deps.Now())
	}
	inserted, err := tx.Query(ctx, reachSQL, c.counters, c.thresholds, c.armings, c.reached, c.events, c.used, c.at)
	if err != nil {
		return nil, fmt.Errorf("write thresholds: %w", err)
	}
	type key struct{ counter, threshold, arming string }
	fresh := map[key]bool{}
	var k key
	var reached bool
	if _, err := pgx.ForEachRow(inserted, []any{&k.counter, &k.threshold, &k.arming, &reached}, func() error {
		fresh[k] = reached
		return nil
	}); err != nil {
		return nil, fmt.Errorf("write thresholds: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r thresholdRow) bool {
		return r.announce == nil || !fresh[key{r.counter, r.point.name(), r.arming.name()}]
	}), nil
}

// announce appends a message for each row, in their order.
func (t *thresholds) announce(ctx context.Context, tx pgx.Tx, rows []thresholdRow) error {
	if len(rows) == 0 {
		return nil
	}
	drawn, err := tx.Query(ctx, `SELECT nextval('sluice_version') FROM generate_series(1, $1)`, len(rows))
	if err != nil {
		return fmt.Errorf("draw versions: %w", err)
	}
	versions, err := pgx.CollectRows(drawn, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("draw versions: %w", err)
	}
	for i, r := range rows {
		m, err := messageOf(r)
		if err != nil {
			return err
		}
		m.Version = versions[i]
		if err := outbox.Append(ctx, tx, m); err != nil {
			return err
		}
	}
	return nil
}
