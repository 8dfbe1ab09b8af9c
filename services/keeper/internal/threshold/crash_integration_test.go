//go:build integration

package threshold

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// killer ends the process that runs statements, at one of its steps: before a
// statement is sent, or after its answer has come.
type killer struct {
	steps atomic.Int64
	at    int64 // the step that is its last; 0: none
	kill  context.CancelFunc
}

func (k *killer) step() {
	if k.steps.Add(1) == k.at {
		k.kill()
	}
}

func (k *killer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	k.step()
	return ctx
}

func (k *killer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) { k.step() }

// poolWith is a pool whose statements k counts.
func (d *desk) poolWith(k *killer) *pgxpool.Pool {
	d.t.Helper()
	cfg, err := pgxpool.ParseConfig(d.dsn)
	if err != nil {
		d.t.Fatal(err)
	}
	cfg.ConnConfig.Tracer = k
	pool, err := pgxpool.NewWithConfig(d.t.Context(), cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	return pool
}

// die lets a keeper read the batch and be killed at one step of storing what it shows. It
// reports whether it lived long enough to commit the offsets.
func (d *desk) die(at int64, batch []usage.Event) (lived bool) {
	d.t.Helper()
	ctx, kill := context.WithCancel(d.t.Context())
	defer kill()
	k := &killer{at: at, kill: kill}
	pool := d.poolWith(k)
	defer pool.Close()
	keeper := d.keeperOn(pool)
	observe(keeper, batch...)
	err := keeper.Flush(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		d.t.Fatal(err)
	}
	return err == nil && k.steps.Load() < at
}

// Wherever a keeper dies, its offsets are not committed, and the next one reads
// the same events again: each threshold is announced, once.
func TestAKillAtAnyStepNeitherLosesNorDoublesACrossing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	steps := int64(1)
	for ; ; steps++ {
		c := newTally(100)
		c.counter = fmt.Sprintf("{t:acme}:t::killed-%d:quota:month:202607", steps)
		batch := []usage.Event{c.take(85), c.take(20)}
		lived := d.die(steps, batch)
		d.deliver(d.keeper(), batch...) // after the restart
		var reached, messages int
		if err := d.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM thresholds WHERE counter = $1 AND reached),
			(SELECT count(*) FROM outbox WHERE payload::jsonb->>'counter' = $1)`, c.counter).Scan(&reached, &messages); err != nil {
			t.Fatal(err)
		}
		if reached != 2 || messages != 2 {
			t.Fatalf("killed at step %d: %d thresholds, %d messages", steps, reached, messages)
		}
		if lived {
			break
		}
	}
	// begin, insert, two messages and commit; before and after.
	if steps < 10 {
		t.Fatalf("only %d steps were seen", steps)
	}
}

// Any order, duplicates in a batch and across batches, restarts in between, and
// refunds: what use reached at any time is announced once, the lowest first.
func TestAnyHistoryIsAnnouncedOnceAndAscending(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for seed := range uint64(25) {
		random := rand.New(rand.NewPCG(seed, 7))
		c := newTally(100)
		c.counter = fmt.Sprintf("{t:acme}:t::seed-%d:quota:month:202607", seed)
		var events []usage.Event
		most := int64(0)
		for range 40 {
			events = append(events, c.take(random.Int64N(6)))
			most = max(most, c.consumed-c.refunded)
			if random.IntN(3) == 0 {
				c.refund(random.Int64N(min(8, c.consumed-c.refunded+1)))
			}
		}
		for range 10 {
			events = append(events, events[random.IntN(40)])
		}
		random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		k := d.keeper()
		for len(events) > 0 {
			n := 1 + random.IntN(min(9, len(events)))
			d.deliver(k, events[:n]...)
			events = events[n:]
			if random.IntN(4) == 0 {
				k = d.keeper()
			}
		}
		var want []string
		for _, at := range []int64{80, 100} {
			if most >= at {
				want = append(want, fmt.Sprintf("%d%%@100", at))
			}
		}
		if got := d.announcedOf(c.counter); !slices.Equal(got, want) {
			t.Fatalf("seed %d: use came to %d, announced %q", seed, most, got)
		}
	}
}
