//go:build integration

package relay

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/libs/stream"
)

func TestStandbyTakesOverWhenTheActiveRelayLosesItsConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.relay()
	b.streaming(first)
	second := b.relay()
	b.eventually("the second relay to stand by", func() bool { return second.Ready() == nil && !second.active() })
	table := b.table()
	b.put("a", 1)
	b.equal("with the first", table)

	// The replication connection is killed until the other one has the slot.
	b.eventually("a take-over", func() bool {
		b.exec(`SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1 AND active_pid IS NOT NULL`, b.slot)
		return second.active()
	})
	b.put("a", 2)
	b.remove("a")
	b.put("b", 3)
	b.equal("after the take-over", table)
	second.stop()
	b.put("b", 4)
	b.streaming(first)
	b.equal("after the first took over again", table)
	b.equal("read from the start", b.table())
}

func TestDeletionsWhileThereWasNoSlotArrive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	relay := b.relay()
	b.streaming(relay)
	for _, id := range []string{"kept", "changed", "erased", "vanished"} {
		b.put(id, 1)
	}
	table := b.table()
	b.equal("before", table)
	relay.stop()
	b.eventually("the slot to be dropped", func() bool {
		_, err := b.conn.Exec(t.Context(), `SELECT pg_drop_replication_slot($1)`, b.slot)
		return err == nil
	})
	b.put("changed", 2)
	b.remove("erased")
	b.exec(`DELETE FROM thing WHERE id = 'vanished'`)
	b.exec(`DELETE FROM outbox`)          // neither WAL nor outbox knows
	err := b.inTx(func(tx pgx.Tx) error { // no state: nothing but the outbox knows of it
		return outbox.Append(t.Context(), tx, outbox.Message{Topic: notes, Key: "k", Version: 1, Payload: []byte("note")})
	})
	if err != nil {
		t.Fatal(err)
	}
	b.streaming(b.relay())
	b.equal("after a new slot", table)
	b.eventually("the outbox to be emptied", func() bool { return b.outboxLen() == 0 })
	if got := b.records(notes); len(got) != 1 || string(got[0].Value) != "note" {
		t.Fatalf("notes %v", got)
	}
	b.equal("read from the start", b.table())
	if table.Len() != 2 {
		t.Fatalf("%d records, want kept and changed", table.Len())
	}
	b.put("vanished", 9) // and it comes back
	b.equal("created again", table)
}

func TestEmptiedTopicIsFilledAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	relay := b.relay()
	b.streaming(relay)
	b.put("a", 1)
	b.put("b", 2)
	table := b.table()
	b.equal("before", table)
	b.empty()
	b.remove("b")
	fresh := b.table()
	b.equal("a fresh table on the emptied topic", fresh)
	b.equal("the table from before", table)
}

func TestTopicDeletedAndMadeAgainIsFilledAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.streaming(b.relay())
	b.put("a", 1)
	b.put("b", 2)
	table := b.table()
	b.equal("before", table)
	name := b.stream.Topic(things)
	if _, err := b.admin.DeleteTopics(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	b.put("a", 3)
	b.remove("b")
	b.equal("a fresh table", b.table())
	b.equal("the table from before", table)
}

func TestStaleRecordOfAnotherRelayIsFollowedByTheNewest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	relay := b.relay()
	b.streaming(relay)
	b.put("a", 1)
	b.put("a", 2)
	b.put("gone", 3)
	b.remove("gone")
	table := b.table()
	b.equal("before", table)
	zombie := func(key string, version int64, value string) {
		stamp := stream.Stamp{Generation: 1, Version: version}
		rec := &kgo.Record{Topic: b.stream.Topic(things), Key: []byte(key), Value: []byte(value), Headers: stamp.Headers()}
		if err := b.kafka.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	zombie("a", 1, `{"n": 1}`)
	zombie("gone", 3, `{"n": 3}`)
	zombie("made-up", 1, `{}`)
	b.eventually("the newest record of each key to be the last in the topic", func() bool {
		last := map[string]*kgo.Record{}
		for _, r := range b.records(things) {
			last[string(r.Key)] = r
		}
		return string(last["a"].Value) == `{"n": 2}` && last["gone"].Value == nil && last["made-up"].Value == nil
	})
	b.equal("afterwards", table)
	b.equal("read from the start", b.table())
	if testutil.ToFloat64(relay.metrics.surprises.WithLabelValues(things)) == 0 {
		t.Fatal("the surprise was not counted")
	}
}

func TestAnotherDatabaseBeginsANewGeneration(t *testing.T) {
	t.Parallel()
	before := newBench(t)
	relay := before.relay()
	before.streaming(relay)
	for n := range 5 {
		before.put("a", n)
	}
	before.put("old", 1)
	table := before.table()
	before.equal("the first database", table)
	relay.stop()

	after := newBench(t)
	after.stream = before.stream                        // the same topics
	after.exec(`SELECT setval('sluice_version', 1000)`) // versions alone would not tell
	after.put("a", 100)
	after.streaming(after.relay())
	after.equal("the second database", table)
	e, _ := table.Get("a")
	if e.Generation != 2 || e.Version != 1001 {
		t.Fatalf("a = %+v, want generation 2, version 1001", e)
	}
	if _, ok := table.Get("old"); ok {
		t.Fatal("a key of the first database is still there")
	}
}

func TestTopicAheadOfARestoredDatabaseBeginsANewGeneration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	relay := b.relay()
	b.streaming(relay)
	b.put("a", 1)
	for n := range 10 {
		b.put("a", n)
	}
	table := b.table()
	b.equal("before", table)
	relay.stop()
	// As after restoring a copy of the data folder: same system, earlier state.
	b.exec(`UPDATE thing SET version = 1, document = '{"n":1}' WHERE id = 'a'`)
	b.exec(`SELECT setval('sluice_version', 1)`)
	b.streaming(b.relay())
	b.equal("restored", table)
	b.put("a", 77) // version 2, which the first life had used
	b.equal("written after restoring", table)
	if e, _ := table.Get("a"); e.Generation != 2 || e.Version != 2 {
		t.Fatalf("a = %+v", e)
	}
}

// A relay that was stopped may publish before it hears that its connection is
// gone, unless it asks.
func TestSlotIsAskedForAfterAPause(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, err := New(Config{Slot: b.slot, MirrorEvery: 1, ReconcileEvery: 1, StandbyEvery: 1}, Deps{Topics: registry})
	if err != nil {
		t.Fatal(err)
	}
	open := func() *outbox.Reader {
		r, err := outbox.Open(t.Context(), outbox.ReaderOptions{DatabaseURL: b.dsn, Slot: b.slot})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	mine := open()
	run := &session{s: s, ctx: t.Context(), reader: mine, conn: b.conn}
	if err := run.held(); err != nil {
		t.Fatalf("with the slot: %v", err)
	}
	mine.Close()
	b.eventually("the slot to be free", func() bool {
		slot, err := outbox.ReadSlot(t.Context(), b.conn, b.slot)
		return err == nil && slot.HolderPID == 0
	})
	defer open().Close()
	if err := run.held(); err != nil {
		t.Fatalf("asked again within %v: %v", holdLimit, err)
	}
	run.heldAt = run.heldAt.Add(-holdLimit)
	if err := run.held(); err == nil || !strings.Contains(err.Error(), "not by this relay") {
		t.Fatalf("another relay holds the slot; held = %v", err)
	}
}

func TestPartitionCountIsRefusedByName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.admin.CreateTopic(t.Context(), 3, 1, nil, b.stream.Topic(things)); err != nil {
		t.Fatal(err)
	}
	relay := b.relay()
	b.eventually("the relay to say so", func() bool {
		err := relay.Ready()
		return err != nil && containsAll(err.Error(), "things.v1", "3 partitions")
	})
}

func TestMirrorRecordIsRepeatedAndEqualsTheView(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.streaming(b.relay())
	b.put("a", 1)
	b.put("b", 2)
	b.remove("a")
	table := b.table()
	b.equal("once", table)
	var version int64
	var payload string
	if err := b.conn.QueryRow(t.Context(), `SELECT version, payload FROM things_v1 WHERE payload IS NOT NULL`).Scan(&version, &payload); err != nil {
		t.Fatal(err)
	}
	state := table.State()
	if want := stream.FormatDigest(stream.Digest("b", version, []byte(payload))); state.Count != 1 || state.Digest != want {
		t.Fatalf("state %+v, want digest %s", state, want)
	}
	age := table.Age()
	b.eventually("a newer mirror record, though nothing changes", func() bool { return table.Age() < age })
}

func containsAll(s string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}
