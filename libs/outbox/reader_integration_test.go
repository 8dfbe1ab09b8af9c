//go:build integration

package outbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/migrate"
	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/libs/servertest"
)

const patience = 20 * time.Second

type bench struct {
	t    *testing.T
	dsn  string
	slot string
	conn *pgx.Conn
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dsn := servertest.Postgres(t)
	if err := migrate.Up(t.Context(), dsn, "outbox"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &bench{t: t, dsn: dsn, slot: "reader_" + conn.Config().Database, conn: conn}
}

func (b *bench) append(messages ...outbox.Message) {
	b.t.Helper()
	err := pgx.BeginFunc(b.t.Context(), b.conn, func(tx pgx.Tx) error {
		for _, m := range messages {
			if err := outbox.Append(b.t.Context(), tx, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// reading is a reader that runs, and what it has handed out.
type reading struct {
	*outbox.Reader
	mu       sync.Mutex
	rows     []outbox.Row
	position outbox.LSN
	stop     func()
}

func (b *bench) open() *reading {
	b.t.Helper()
	r, err := outbox.Open(b.t.Context(), outbox.ReaderOptions{DatabaseURL: b.dsn, Slot: b.slot})
	if err != nil {
		b.t.Fatal(err)
	}
	reading := &reading{Reader: r}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, reading.take) }()
	reading.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("Run: %v", err)
		}
		r.Close()
	})
	b.t.Cleanup(reading.stop)
	return reading
}

func (r *reading) take(e outbox.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Row != nil {
		r.rows = append(r.rows, *e.Row)
		return nil
	}
	r.position = max(r.position, e.Position)
	return nil
}

func (r *reading) snapshot() ([]outbox.Row, outbox.LSN) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rows[:len(r.rows):len(r.rows)], r.position
}

func TestReaderHandsOutCommittedRowsOnlyInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.open()
	if !r.Created || !strings.Contains(r.Origin, "/"+b.conn.Config().Database+"/") {
		t.Fatalf("created %v, origin %q", r.Created, r.Origin)
	}
	before := time.Now().Add(-time.Minute)
	b.append(outbox.Message{Topic: "t", Key: "a", Version: 1, Payload: []byte("ünïcode\n")}, outbox.Message{Topic: "t", Key: "b", Version: 2})
	tx, err := b.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := outbox.Append(t.Context(), tx, outbox.Message{Topic: "t", Key: "never", Version: 3}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.append(outbox.Message{Topic: "t", Key: "c", Version: 4, Payload: []byte{}})
	servertest.Eventually(t, patience, "three rows", func() bool { rows, _ := r.snapshot(); return len(rows) == 3 })
	rows, _ := r.snapshot()
	if rows[0].Key != "a" || string(rows[0].Payload) != "ünïcode\n" || rows[0].Version != 1 || rows[0].ID == 0 || rows[0].CommittedAt.Before(before) {
		t.Errorf("first row %+v", rows[0])
	}
	if rows[1].Key != "b" || rows[1].Payload != nil {
		t.Errorf("a deletion came as %+v", rows[1])
	}
	if rows[2].Key != "c" || rows[2].Payload == nil || len(rows[2].Payload) != 0 {
		t.Errorf("an empty payload came as %+v", rows[2])
	}
}

func TestWhatIsNotConfirmedComesAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.open()
	b.append(outbox.Message{Topic: "t", Key: "a", Version: 1})
	committed := b.walEnd()
	servertest.Eventually(t, patience, "a, committed", func() bool { rows, at := r.snapshot(); return len(rows) == 1 && at >= committed })
	_, position := r.snapshot()
	r.Confirm(position)
	servertest.Eventually(t, patience, "the confirmation", func() (there bool) {
		err := b.conn.QueryRow(t.Context(), `SELECT confirmed_flush_lsn >= $1::text::pg_lsn FROM pg_replication_slots WHERE slot_name = $2`, position.String(), b.slot).Scan(&there)
		if err != nil {
			t.Fatal(err)
		}
		return there
	})
	b.append(outbox.Message{Topic: "t", Key: "b", Version: 2})
	servertest.Eventually(t, patience, "b", func() bool { rows, _ := r.snapshot(); return len(rows) == 2 })
	r.stop()
	again := b.openFree()
	if again.Created {
		t.Fatal("the slot was there")
	}
	servertest.Eventually(t, patience, "b again", func() bool { rows, _ := again.snapshot(); return len(rows) > 0 })
	if rows, _ := again.snapshot(); rows[0].Key != "b" {
		t.Fatalf("the first row again is %+v", rows[0])
	}
}

// walEnd is the end of what is written: behind the commit of what was appended.
func (b *bench) walEnd() outbox.LSN {
	b.t.Helper()
	var text string
	if err := b.conn.QueryRow(b.t.Context(), `SELECT pg_current_wal_lsn()::text`).Scan(&text); err != nil {
		b.t.Fatal(err)
	}
	end, err := pglogrepl.ParseLSN(text)
	if err != nil {
		b.t.Fatal(err)
	}
	return end
}

// openFree opens once the server has noticed that the slot is free.
func (b *bench) openFree() *reading {
	b.t.Helper()
	servertest.Eventually(b.t, patience, "the slot to be free", func() bool {
		slot, err := outbox.ReadSlot(b.t.Context(), b.conn, b.slot)
		if err != nil {
			b.t.Fatal(err)
		}
		return slot.Exists && slot.HolderPID == 0
	})
	return b.open()
}

func TestSecondReaderIsToldThatTheSlotIsTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.open()
	_, err := outbox.Open(t.Context(), outbox.ReaderOptions{DatabaseURL: b.dsn, Slot: b.slot})
	if !errors.Is(err, outbox.ErrSlotActive) {
		t.Fatalf("err = %v", err)
	}
	slot, err := outbox.ReadSlot(t.Context(), b.conn, b.slot)
	if err != nil || slot.HolderPID != r.PID() {
		t.Fatalf("slot %+v, reader's pid %d: %v", slot, r.PID(), err)
	}
}

func TestSlotOfAnotherDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.open()
	other := newBench(t)
	if _, err := outbox.ReadSlot(t.Context(), other.conn, b.slot); err == nil || !strings.Contains(err.Error(), "another database") {
		t.Fatalf("err = %v", err)
	}
}

func TestReaderAnswersTheServerWhileItsHandlerBlocks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r, err := outbox.Open(t.Context(), outbox.ReaderOptions{DatabaseURL: b.dsn, Slot: b.slot})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- r.Run(ctx, func(outbox.Event) error { <-ctx.Done(); return nil })
	}()
	b.append(outbox.Message{Topic: "t", Key: "a", Version: 1})
	// The server would have given the slot up after its 5 s.
	began := time.Now()
	servertest.Eventually(t, patience, "seven seconds to pass with the slot held", func() bool {
		slot, err := outbox.ReadSlot(t.Context(), b.conn, b.slot)
		if err != nil || slot.HolderPID != r.PID() {
			t.Fatalf("after %v the slot is %+v: %v", time.Since(began), slot, err)
		}
		return time.Since(began) > 7*time.Second
	})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestLeftoverIsPagedAndDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.append(outbox.Message{Topic: "t", Key: "a", Version: 1}, outbox.Message{Topic: "t", Key: "b", Version: 2, Payload: []byte("x")}, outbox.Message{Topic: "t", Key: "c", Version: 3})
	page, err := outbox.Leftover(t.Context(), b.conn, 0, 2)
	if err != nil || len(page) != 2 || page[0].Key != "a" || page[0].Payload != nil || string(page[1].Payload) != "x" {
		t.Fatalf("first page %+v: %v", page, err)
	}
	if err := outbox.Delete(t.Context(), b.conn, []int64{page[0].ID, page[1].ID}); err != nil {
		t.Fatal(err)
	}
	rest, err := outbox.Leftover(t.Context(), b.conn, 0, 10)
	if err != nil || len(rest) != 1 || rest[0].Key != "c" {
		t.Fatalf("rest %+v: %v", rest, err)
	}
}

func TestLastConfirmationIsSentOnAStop(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.open()
	b.append(outbox.Message{Topic: "t", Key: "a", Version: 1})
	servertest.Eventually(t, patience, "a, committed", func() bool { rows, at := r.snapshot(); return len(rows) == 1 && at > 0 })
	_, position := r.snapshot()
	r.Confirm(position)
	r.stop()
	again := b.openFree()
	b.append(outbox.Message{Topic: "t", Key: "b", Version: 2})
	servertest.Eventually(t, patience, "b", func() bool { rows, _ := again.snapshot(); return len(rows) > 0 })
	if rows, _ := again.snapshot(); rows[0].Key != "b" {
		t.Fatalf("%s came again, though it was confirmed before the stop", rows[0].Key)
	}
}
