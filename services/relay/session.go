package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/outbox"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events"
)

// session is one time of holding the slot. Its context ends with the first
// thing that goes wrong, and nothing is published after that.
type session struct {
	s      *Service
	ctx    context.Context // of the session; outlives a clean stop, briefly
	fail   context.CancelCauseFunc
	stop   <-chan struct{} // closed when the relay is to stop
	reader *outbox.Reader
	conn   *pgx.Conn // the publisher's, for short questions
	views  *pgx.Conn // the publisher's, for reading views
	sweep  *pgx.Conn // the sweeper's
	kafka  *kgo.Client
	flight *flight
	tables map[string]*table
	order  []*table
	events chan outbox.Event
	wakeup chan struct{} // surprises
	// heldAt is when Postgres last said that the slot is ours.
	heldAt time.Time
	// early are rows that were published from the outbox table and are still
	// to come from the WAL.
	early map[int64]bool
	work  sync.WaitGroup
}

// table is a compacted topic as the publisher sees it.
type table struct {
	events.Topic
	tail       *tail
	account    *stream.Ledger // what was handed out; the topic once all has landed
	generation int64
	dirty      map[string]bool
	// touched are the keys carried since the snapshot of the reconciliation
	// that is under way; nil while there is none.
	touched  map[string]bool
	mirrored *passage // the last mirror record
	changed  bool     // since the last mirror record
}

// eventBuffer lets the WAL be read while a reconciliation runs.
const eventBuffer = 1024

// session takes the slot, carries, and returns what ended it.
func (s *Service) session(parent context.Context) error {
	conn, err := s.connect(parent)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	if err := s.awaitSlot(parent, conn); err != nil {
		return err
	}
	reader, err := outbox.Open(parent, outbox.ReaderOptions{DatabaseURL: s.deps.DatabaseURL.Reveal(), Slot: s.cfg.Slot})
	if err != nil {
		return err
	}
	defer reader.Close()
	s.setState(starting, nil)
	s.metrics.active.Set(1)
	s.metrics.sessions.Inc()
	clear(s.parked)
	s.metrics.parked.Set(0)
	s.deps.Log.Info("relay is active", "slot", s.cfg.Slot, "slotCreated", reader.Created, "instance", s.cfg.Instance)
	return s.serve(parent, conn, reader)
}

// serve runs the session's goroutines and waits for all of them.
func (s *Service) serve(parent context.Context, conn *pgx.Conn, reader *outbox.Reader) error {
	views, err := s.connect(parent)
	if err != nil {
		return err
	}
	defer closeConn(views)
	sweep, err := s.connect(parent)
	if err != nil {
		return err
	}
	defer closeConn(sweep)
	// A deleted row that comes back after a crash is only carried again.
	if _, err := sweep.Exec(parent, "SET synchronous_commit = off"); err != nil {
		return fmt.Errorf("prepare sweeping: %w", err)
	}
	kafka, err := s.newProducer()
	if err != nil {
		return err
	}
	defer kafka.Close()
	ctx, fail := context.WithCancelCause(context.WithoutCancel(parent))
	defer fail(nil)
	run := &session{
		s: s, ctx: ctx, fail: fail, stop: parent.Done(), reader: reader, conn: conn, views: views, sweep: sweep, kafka: kafka,
		flight: newFlight(), tables: map[string]*table{}, events: make(chan outbox.Event, eventBuffer), wakeup: make(chan struct{}, 1), early: map[int64]bool{},
	}
	run.start("reader", func() error { return reader.Run(ctx, run.receive) })
	run.start("sweeper", run.sweepOutbox)
	err = run.begin(parent)
	if err == nil {
		err = run.publish()
	}
	if err == nil && ctx.Err() == nil {
		run.settle()
	}
	fail(err)
	run.work.Wait()
	return context.Cause(ctx)
}

func (s *Service) newProducer() (*kgo.Client, error) {
	client, err := kgo.NewClient(append(s.deps.Stream.ClientOptions(),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(stream.MaxRecordBytes),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
	)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return client, nil
}

// start runs one of the session's goroutines; the session ends with it.
func (r *session) start(name string, run func() error) {
	r.work.Go(func() {
		if err := run(); err != nil {
			r.fail(fmt.Errorf("%s: %w", name, err))
		}
	})
}

// receive hands an event to the publisher.
func (r *session) receive(e outbox.Event) error {
	select {
	case r.events <- e:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// settle is a clean stop: what has left is waited for, briefly, so that the
// next relay need not carry it again.
func (r *session) settle() {
	if r.mirrorAll(true) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, 2*time.Second)
	defer cancel()
	if r.kafka.Flush(ctx) != nil {
		return
	}
	r.reader.Confirm(r.flight.position())
}

func (s *Service) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(s.deps.DatabaseURL.Reveal())
	if err != nil {
		return nil, errors.New("postgres: the database url cannot be parsed")
	}
	config.RuntimeParams["application_name"] = "sluice relay"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return conn, nil
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // nothing depends on a clean goodbye
}

// awaitSlot stands by until the slot is free or missing. A slot whose WAL is
// gone is dropped here: outbox and reconciliation make up for the loss.
func (s *Service) awaitSlot(ctx context.Context, conn *pgx.Conn) error {
	ticker := time.NewTicker(s.cfg.StandbyEvery)
	defer ticker.Stop()
	for {
		slot, err := outbox.ReadSlot(ctx, conn, s.cfg.Slot)
		if err != nil {
			return err
		}
		if slot.HolderPID == 0 {
			if slot.Lost {
				s.deps.Log.Error("replication slot has lost WAL and is made again", "slot", s.cfg.Slot)
				return outbox.DropSlot(ctx, conn, s.cfg.Slot)
			}
			return nil
		}
		s.setState(standby, nil)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// holdLimit is how old Postgres's word on the slot may be; well below the 5 s
// after which it gives the slot of a stalled relay to another.
const holdLimit = 2 * time.Second

// held makes sure that this relay still holds the slot. The monotonic clock
// goes on while the process is stopped, so one that wakes up asks first.
func (r *session) held() error {
	if err := r.ctx.Err(); err != nil {
		return context.Cause(r.ctx)
	}
	asked := time.Now()
	if asked.Sub(r.heldAt) < holdLimit {
		return nil
	}
	slot, err := outbox.ReadSlot(r.ctx, r.conn, r.s.cfg.Slot)
	if err != nil {
		return err
	}
	if slot.HolderPID != r.reader.PID() {
		return fmt.Errorf("replication slot %s is held by server process %d, not by this relay's %d", r.s.cfg.Slot, slot.HolderPID, r.reader.PID())
	}
	r.heldAt = asked
	r.s.metrics.slotLag.Set(float64(slot.LagBytes))
	return nil
}

// sweepEvery bounds how long a carried row stays in the outbox.
const (
	sweepEvery = 100 * time.Millisecond
	sweepBatch = 500
)

// sweepOutbox deletes carried rows, apart from the publisher, which does not
// wait for it.
func (r *session) sweepOutbox() error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-r.ctx.Done():
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			_ = r.sweepOnce(ctx) // what stays is carried, or skipped, again
			return nil
		case <-ticker.C:
		}
		if err := r.sweepOnce(r.ctx); err != nil && r.ctx.Err() == nil {
			return err
		}
	}
}

func (r *session) sweepOnce(ctx context.Context) error {
	ids := r.flight.takeCarried()
	for len(ids) > 0 {
		n := min(len(ids), sweepBatch)
		if err := outbox.Delete(ctx, r.sweep, ids[:n]); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}
