//go:build integration

package relay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events"
)

func TestCommittedRowBecomesARecordWithItsHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.streaming(b.relay())
	table := b.table()
	b.put("a", 1)
	b.eventually("the record", func() bool { _, ok := table.Get("a"); return ok })
	e, _ := table.Get("a")
	if e.Value != `{"n": 1}` || e.Generation != 1 || e.Version != 1 {
		t.Fatalf("entry %+v", e)
	}
	if e.CommittedAt.IsZero() || e.RelayedAt.Before(e.CommittedAt) || e.AppliedAt.Before(e.RelayedAt) {
		t.Fatalf("times out of order: committed %v, relayed %v, applied %v", e.CommittedAt, e.RelayedAt, e.AppliedAt)
	}
	t.Logf("commit → relay %v, relay → table %v", e.RelayedAt.Sub(e.CommittedAt), e.AppliedAt.Sub(e.RelayedAt))
	b.eventually("the outbox to be emptied", func() bool { return b.outboxLen() == 0 })
}

func TestOrderOfAKeyUpdatesDeletionAndCreationAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.streaming(b.relay())
	for n := range 20 {
		b.put("a", n)
		b.put("b", n)
	}
	b.remove("a")
	b.put("a", 100)
	b.remove("b")
	table := b.table()
	b.equal("after writing", table)
	var last int64
	var values []string
	for _, r := range b.records(things) {
		stamp, err := stream.ParseStamp(r.Headers)
		if err != nil {
			t.Fatal(err)
		}
		if stamp.Version <= last {
			t.Fatalf("version %d after %d", stamp.Version, last)
		}
		last = stamp.Version
		if string(r.Key) == "a" {
			values = append(values, string(r.Value))
		}
	}
	if len(values) != 22 || values[20] != "" || values[21] != `{"n": 100}` {
		t.Fatalf("records of a: %q", values)
	}
}

func TestRollbackPublishesNothingAndATransactionComesWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.streaming(b.relay())
	boom := errors.New("boom")
	err := b.inTx(func(tx pgx.Tx) error {
		if err := b.write(tx, "never", `{}`); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	const many = 5000 // more than is let in flight at once
	err = b.inTx(func(tx pgx.Tx) error {
		for i := range many {
			if err := b.write(tx, fmt.Sprintf("k%04d", i), `{}`); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	table := b.table()
	b.equal("after a large transaction", table)
	if _, ok := table.Get("never"); ok || table.Len() != many {
		t.Fatalf("%d records, never: %v", table.Len(), ok)
	}
	b.eventually("the outbox to be emptied", func() bool { return b.outboxLen() == 0 })
}

func TestTopicThatIsNotCompactedIsCarriedAsItComes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	relay := b.relay()
	b.streaming(relay)
	write := func(payload string) {
		err := b.inTx(func(tx pgx.Tx) error {
			return outbox.Append(t.Context(), tx, outbox.Message{
				Topic: notes, Key: "k", Version: 1, Payload: []byte(payload), Headers: map[string]string{"ce_id": payload, "ce_type": "note"},
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	write("two")
	relay.stop()
	write("three") // lies in the outbox until there is a relay
	b.streaming(b.relay())
	b.eventually("the outbox to be emptied", func() bool { return b.outboxLen() == 0 })
	var got []string
	for _, r := range b.records(notes) {
		headers := map[string]string{}
		for _, h := range r.Headers {
			headers[h.Key] = string(h.Value)
		}
		if headers["ce_id"] != string(r.Value) || headers["ce_type"] != "note" || headers[events.HeaderVersion] != "1" {
			t.Errorf("record %s has headers %v", r.Value, headers)
		}
		if !slices.Contains(got, string(r.Value)) { // at least once
			got = append(got, string(r.Value))
		}
	}
	if strings.Join(got, " ") != "one two three" {
		t.Fatalf("records %q", got)
	}
}

func TestRecordThatIsTooLargeIsParkedAndBlocksNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	relay := b.relay()
	b.streaming(relay)
	b.put("a", 1)
	err := b.inTx(func(tx pgx.Tx) error {
		return b.write(tx, "huge", `{"s":"`+strings.Repeat("x", stream.MaxRecordBytes)+`"}`)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = b.inTx(func(tx pgx.Tx) error {
		return outbox.Append(t.Context(), tx, outbox.Message{Topic: "nobody.v1", Key: "k", Version: 1, Payload: []byte("x")})
	})
	if err != nil {
		t.Fatal(err)
	}
	b.put("b", 2)
	table := b.table()
	b.eventually("b to pass", func() bool { _, ok := table.Get("b"); return ok && table.Ready() == nil })
	b.eventually("only the parked rows to be left", func() bool { return b.outboxLen() == 2 })
	if parked := testutil.ToFloat64(relay.metrics.parked); parked != 2 {
		t.Fatalf("%v rows are reported as parked", parked)
	}
	if _, ok := table.Get("huge"); ok {
		t.Fatal("a record larger than allowed was carried")
	}
}

func TestIdleSlotHoldsNoWAL(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.streaming(b.relay())
	b.exec(`CREATE TABLE noise (t text)`)
	b.exec(`INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 5000)`)
	var end string
	if err := b.conn.QueryRow(t.Context(), `SELECT pg_current_wal_lsn()::text`).Scan(&end); err != nil {
		t.Fatal(err)
	}
	b.eventually("the slot to move past WAL that has no rows for it", func() (passed bool) {
		err := b.conn.QueryRow(t.Context(), `SELECT confirmed_flush_lsn >= $1::pg_lsn FROM pg_replication_slots WHERE slot_name = $2`, end, b.slot).Scan(&passed)
		if err != nil {
			t.Fatal(err)
		}
		return passed
	})
}
