//go:build integration

package threshold

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// desk is a database, and keepers' thresholds at work on it.
type desk struct {
	t    *testing.T
	dsn  string
	pool *pgxpool.Pool
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dsn := servertest.Postgres(t)
	if err := migrate.Up(t.Context(), dsn, "outbox", "keeper"); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &desk{t: t, dsn: dsn, pool: pool}
}

// keeper is a new process: it remembers nothing.
func (d *desk) keeper() *Announcer { return d.keeperOn(d.pool) }

func (d *desk) keeperOn(pool *pgxpool.Pool) *Announcer {
	d.t.Helper()
	return New(Options{Pool: pool, MaxStored: 1000, Log: slog.New(slog.NewTextHandler(d.t.Output(), nil)), Registerer: prometheus.NewRegistry()})
}

// observe passes the charges of events on as the keeper does.
func observe(a *Announcer, batch ...usage.Event) {
	for i := range batch {
		for j := range batch[i].Charges {
			a.Observe(&batch[i].Charges[j], batch[i].TS, batch[i].ID)
		}
	}
}

// deliver is a batch that is read and stored.
func (d *desk) deliver(a *Announcer, batch ...usage.Event) {
	d.t.Helper()
	observe(a, batch...)
	if err := a.Flush(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// announced are the outbox's events, in order, as threshold and limit.
func (d *desk) announced() []string { return d.announcedOf("") }

// announcedOf are those of one counter.
func (d *desk) announcedOf(one string) (all []string) {
	d.t.Helper()
	rows, err := d.pool.Query(d.t.Context(), `SELECT payload, headers->>'ce_id' FROM outbox
		WHERE topic = $1 AND payload::jsonb->>'counter' = coalesce(nullif($2, ''), payload::jsonb->>'counter') ORDER BY id`, quotaevents.Topic, one)
	if err != nil {
		d.t.Fatal(err)
	}
	ids := map[string]bool{}
	var payload, id string
	if _, err := pgx.ForEachRow(rows, []any{&payload, &id}, func() error {
		var r quotaevents.Reached
		if err := json.Unmarshal([]byte(payload), &r); err != nil {
			return err
		}
		if ids[id] {
			d.t.Errorf("event id %s twice", id)
		}
		ids[id] = true
		all = append(all, textOf(r))
		return nil
	}); err != nil {
		d.t.Fatal(err)
	}
	return all
}

func textOf(r quotaevents.Reached) string {
	name := point{percent: r.Threshold.Percent, absolute: r.Threshold.Absolute}.name()
	of := "unlimited"
	if r.Limit != nil {
		of = fmt.Sprint(*r.Limit)
	}
	return fmt.Sprintf("%s@%s", name, of)
}

func (d *desk) expect(want ...string) {
	d.t.Helper()
	if got := d.announced(); !slices.Equal(got, want) {
		d.t.Fatalf("announced %q, not %q", got, want)
	}
}

// tally makes the usage events of one counter, in the order of its charges.
type tally struct {
	counter            string
	limit              *int64
	thresholds         *rules.Thresholds
	consumed, refunded int64
	n                  int
}

func newTally(limit int64) *tally {
	return &tally{counter: "{t:acme}:t::reports:quota:month:202607", limit: &limit}
}

func (c *tally) take(amount int64) usage.Event {
	c.consumed += amount
	c.n++
	return usage.Event{
		ID: fmt.Sprintf("%05d", c.n), TS: noon, TenantID: "acme",
		Charges: []usage.Charge{{
			Counter: c.counter, Metric: "reports", Amount: amount, Consumed: c.consumed, Refunded: c.refunded, Limit: c.limit, Thresholds: c.thresholds,
		}},
	}
}

func (c *tally) refund(amount int64) { c.refunded += amount }

func (c *tally) under(limit int64) { c.limit = &limit }

func TestThresholdsAreAnnouncedOnceAndInOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, c := d.keeper(), newTally(100)
	d.deliver(k, c.take(79))
	d.expect()
	reached := c.take(1)
	d.deliver(k, reached, reached) // twice in a batch
	d.expect("80%@100")
	d.deliver(k, reached) // and across batches
	d.deliver(d.keeper(), reached)
	d.deliver(k, c.take(19), c.take(1), c.take(1))
	d.deliver(d.keeper(), c.take(5), reached)
	d.expect("80%@100", "100%@100")
}

func TestOneRequestFromNothingTo120PercentReachesAll(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := newTally(100)
	c.thresholds = &rules.Thresholds{Percent: []int64{120, 50, 80, 100}, Absolute: []int64{10, 90, 121}}
	d.deliver(d.keeper(), c.take(120))
	d.expect("10@100", "50%@100", "80%@100", "90@100", "100%@100", "120%@100")
}

func TestHoveringUseIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, c := d.keeper(), newTally(100)
	d.deliver(k, c.take(79))
	for range 5 {
		d.deliver(k, c.take(2))
		c.refund(2)
		d.deliver(d.keeper(), c.take(1))
		c.refund(1)
	}
	d.expect("80%@100")
}

// Another limit is another announcement, also where use was above the threshold
// all along, and one only.
func TestChangedLimitIsAnnouncedOnceMore(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, c := d.keeper(), newTally(100)
	d.deliver(k, c.take(90))
	d.expect("80%@100")
	c.under(105) // 80 % of it is 84
	d.deliver(k, c.take(1))
	d.deliver(d.keeper(), c.take(1))
	d.expect("80%@100", "80%@105")
	c.refund(9) // 83, below it
	d.deliver(k, c.take(0))
	d.deliver(d.keeper(), c.take(9))
	d.expect("80%@100", "80%@105")
	c.under(200)
	d.deliver(k, c.take(68)) // 160
	d.deliver(k, c.take(10), c.take(40))
	d.expect("80%@100", "80%@105", "80%@200", "100%@200")
	c.under(60)
	d.deliver(d.keeper(), c.take(1))
	d.expect("80%@100", "80%@105", "80%@200", "100%@200", "80%@60", "100%@60")
	c.under(100) // a limit that was announced before
	d.deliver(d.keeper(), c.take(1))
	d.expect("80%@100", "80%@105", "80%@200", "100%@200", "80%@60", "100%@60", "100%@100")
}

// Another list of thresholds under the same limit has rows of its own, and
// shares those that both name.
func TestThresholdsOfTwoRulesOnOneCounter(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, c := d.keeper(), newTally(100)
	d.deliver(k, c.take(90))
	c.thresholds = &rules.Thresholds{Percent: []int64{80, 85, 95}}
	d.deliver(k, c.take(1))
	d.expect("80%@100", "85%@100")
}

// Two rules with other limits may charge one counter, and gateways learn of a
// change some milliseconds apart: that must not announce again and again.
func TestLimitsThatAlternateAreAnnouncedOnceEach(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k, c := d.keeper(), newTally(100)
	for range 60 {
		c.under(100)
		d.deliver(k, c.take(1))
		c.under(50)
		d.deliver(k, c.take(1))
	}
	d.expect("80%@50", "100%@50", "80%@100", "100%@100")
}

func TestEachPeriodAndEachCounterAnnouncesAnew(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k := d.keeper()
	for _, counter := range []string{"{t:acme}:t::reports:quota:month:202607", "{t:acme}:t::reports:quota:month:202608", "{s:pay}:s::reports:quota:month:202608"} {
		c := newTally(10)
		c.counter = counter
		d.deliver(k, c.take(8))
	}
	d.expect("80%@10", "80%@10", "80%@10")
	var keys string
	if err := d.pool.QueryRow(t.Context(), `SELECT string_agg(key, ' ' ORDER BY id) FROM outbox`).Scan(&keys); err != nil || keys != "acme acme service/pay" {
		t.Fatalf("keys %q, %v", keys, err)
	}
}

func TestWhatLimitsNobodyIsNotAnnounced(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	k := d.keeper()
	shadow := newTally(10)
	shadow.counter = "{t:acme}:t::reports:quota-shadow:month:202607"
	pending := newTally(10)
	owed := pending.take(9)
	owed.Charges[0].Pending = true
	unlimited := newTally(0)
	unlimited.limit = nil
	none := newTally(10)
	none.thresholds = &rules.Thresholds{}
	absurd := newTally(10)
	strange := absurd.take(9)
	strange.Charges[0].Consumed = -9
	d.deliver(k, shadow.take(10), owed, unlimited.take(10), none.take(10), strange)
	d.expect()
	unlimited.thresholds = &rules.Thresholds{Absolute: []int64{15}}
	d.deliver(k, unlimited.take(10))
	d.expect("15@unlimited")
}

func TestEventSaysAllAndItsAttributesAreHeaders(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := newTally(1000)
	c.take(700)
	c.refund(3)
	d.deliver(d.keeper(), c.take(104))
	var payload, key string
	var headers map[string]string
	if err := d.pool.QueryRow(t.Context(), `SELECT key, payload, headers FROM outbox`).Scan(&key, &payload, &headers); err != nil {
		t.Fatal(err)
	}
	e, err := quotaevents.FromRecord(func(name string) string { return headers[name] }, []byte(payload))
	if err != nil || e.Type != quotaevents.TypeThresholdReached || e.Subject != "tenant/acme" || !e.Time.Equal(noon) || key != "acme" {
		t.Fatalf("key %s, event %+v, %v", key, e, err)
	}
	const want = `{"tenantId":"acme","subject":{"kind":"tenant","value":"acme"},"metric":"reports","period":"month:202607",` +
		`"counter":"{t:acme}:t::reports:quota:month:202607","threshold":{"percent":80},"at":800,"limit":1000,"used":801,"consumed":804,"refunded":3,"decisionId":"00002"}`
	if payload != want {
		t.Fatalf("\n got %s\nwant %s", payload, want)
	}
	// Consumers keep the ids they acted on: no release may make another.
	if e.ID != "3af2041c-f0cb-592c-963a-059c9ca5900c" {
		t.Fatalf("id %q", e.ID)
	}
}

// Names that Postgres cannot hold must not keep other thresholds out.
func TestNameThatIsNoTextHoldsNothingUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := newTally(10)
	c.counter = "{t:a%00%FF}:t::reports:quota:month:202607"
	d.deliver(d.keeper(), c.take(10))
	d.expect("80%@10", "100%@10")
}

func TestKeepersThatShareACounterAnnounceOnceBetweenThem(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var batches [2][]usage.Event
	for n := range 40 {
		c := newTally(100)
		c.counter = fmt.Sprintf("{s:service-%02d}:s::reports:quota:month:202607", n)
		batches[0] = append(batches[0], c.take(85))
		batches[1] = append(batches[1], c.take(20))
	}
	slices.Reverse(batches[1])
	failed := make(chan error, len(batches))
	for _, batch := range batches {
		k := d.keeper()
		go func() { // its end is read below
			observe(k, batch...)
			failed <- k.Flush(context.WithoutCancel(t.Context()))
		}()
	}
	for range batches {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	got := d.announced()
	if n := strings.Count(strings.Join(got, " "), "80%"); n != 40 || len(got) != 80 {
		t.Fatalf("%d of 80 %%, %d in all", n, len(got))
	}
}
