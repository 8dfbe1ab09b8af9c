package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// LSN is a position in the write-ahead log.
type LSN = pglogrepl.LSN

// Event is what the WAL says next: a committed row, or a position up to which
// everything has been handed out.
type Event struct {
	// Row is nil in an event that only marks a position.
	Row *Row
	// Position may be confirmed once all rows handed out before are done with.
	Position LSN
}

// Row is a committed row of the outbox.
type Row struct {
	ID int64
	Message
	// CommittedAt is the commit time of its transaction, in µs.
	CommittedAt time.Time
}

var (
	// ErrSlotActive: another process reads the slot; stand by.
	ErrSlotActive = errors.New("replication slot is read by another process")
	// ErrSilent: the server did not answer for silenceLimit.
	ErrSilent = errors.New("no word from the server")
)

const (
	// senderTimeout is how long the server keeps the slot for a reader that
	// has stopped answering: the longest a standby has to wait.
	senderTimeout = 5 * time.Second
	statusEvery   = time.Second
	silenceLimit  = 10 * time.Second
)

// ReaderOptions say which slot of which database to read.
type ReaderOptions struct {
	// DatabaseURL is a Postgres URL of a user with the attribute REPLICATION.
	DatabaseURL string
	// Slot is made when it is missing: lower-case letters, digits and
	// underscores. Slots of all databases of a server share their names.
	Slot string
}

// Reader receives the outbox from the WAL over a replication connection.
// Confirm may be called from any goroutine.
type Reader struct {
	conn *pgconn.PgConn
	// Origin names this life of the database: system id, timeline, and the
	// database's name and OID (a database made again under its name is
	// another).
	Origin string
	// Created says that the slot was made now: what was committed before is
	// not in the stream.
	Created bool

	confirmed atomic.Uint64
	ask       chan struct{} // the server wants a status now
	decoder   decoder
}

// Open connects, makes the slot if it is missing and begins to stream. It
// returns ErrSlotActive if another process reads the slot.
func Open(ctx context.Context, o ReaderOptions) (*Reader, error) {
	if err := CheckSlotName(o.Slot); err != nil {
		return nil, err
	}
	config, err := pgconn.ParseConfig(o.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", redact(err))
	}
	config.RuntimeParams["replication"] = "database"
	config.RuntimeParams["wal_sender_timeout"] = fmt.Sprint(senderTimeout.Milliseconds())
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open replication connection: %w", err)
	}
	r := &Reader{conn: conn, ask: make(chan struct{}, 1), decoder: decoder{relations: map[uint32]*pglogrepl.RelationMessage{}}}
	if err := r.start(ctx, o.Slot); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// redact keeps a password that a malformed URL holds out of logs.
func redact(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		return errors.New("cannot be parsed")
	}
	return err
}

func (r *Reader) start(ctx context.Context, slot string) error {
	system, err := pglogrepl.IdentifySystem(ctx, r.conn)
	if err != nil {
		return fmt.Errorf("identify system: %w", err)
	}
	oid, err := r.scalar(ctx, "SELECT oid FROM pg_database WHERE datname = current_database()")
	if err != nil {
		return fmt.Errorf("identify database: %w", err)
	}
	r.Origin = fmt.Sprintf("%s/%d/%s/%s", system.SystemID, system.Timeline, system.DBName, oid)
	if err := r.ensureSlot(ctx, slot); err != nil {
		return fmt.Errorf("create replication slot %s: %w", slot, err)
	}
	err = pglogrepl.StartReplication(ctx, r.conn, slot, 0, pglogrepl.StartReplicationOptions{
		Mode: pglogrepl.LogicalReplication, PluginArgs: []string{"proto_version '1'", "publication_names '" + Publication + "'"},
	})
	if isCode(err, "55006") { // object_in_use
		return ErrSlotActive
	}
	if err != nil {
		return fmt.Errorf("start replication from slot %s: %w", slot, err)
	}
	return nil
}

// ensureSlot asks before it makes the slot: a refusal would be an error in the
// server's log at each start.
func (r *Reader) ensureSlot(ctx context.Context, slot string) error {
	found, err := r.scalar(ctx, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = '"+slot+"'")
	if err != nil || found != "0" {
		return err
	}
	_, err = pglogrepl.CreateReplicationSlot(ctx, r.conn, slot, "pgoutput",
		pglogrepl.CreateReplicationSlotOptions{Mode: pglogrepl.LogicalReplication, SnapshotAction: "NOEXPORT_SNAPSHOT"})
	if isCode(err, "42710") { // duplicate_object: another reader was faster
		return nil
	}
	r.Created = err == nil
	return err
}

func (r *Reader) scalar(ctx context.Context, query string) (string, error) {
	results, err := r.conn.Exec(ctx, query).ReadAll()
	if err != nil {
		return "", err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return "", errors.New("no row")
	}
	return string(results[0].Rows[0][0]), nil
}

func isCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

// PID is the server process that reads the slot for this reader.
func (r *Reader) PID() uint32 { return r.conn.PID() }

// Confirm tells the server, with the next status, that everything up to the
// position is done with: it may remove that WAL and never sends it again.
func (r *Reader) Confirm(position LSN) { r.confirmed.Store(uint64(position)) }

// Close ends the connection; the slot stays and is free for another reader.
func (r *Reader) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.conn.Close(ctx) // nothing depends on a clean goodbye
}

// Run hands out events, in commit order, until ctx ends (then it returns nil)
// or the connection breaks. handle is called from one goroutine and may
// block: the server goes on hearing from us meanwhile. An error of handle
// ends Run with it.
func (r *Reader) Run(ctx context.Context, handle func(Event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Interrupting the read spoils the connection, so that waits until the
	// last status is out.
	receiving, interrupt := context.WithCancel(context.WithoutCancel(ctx))
	answered := make(chan struct{})
	go func() { // owned by Run, which waits for it below
		defer close(answered)
		defer interrupt()
		if err := r.answer(ctx); err != nil {
			cancel(err)
		}
	}()
	err := r.receive(receiving, handle)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(nil)
	<-answered
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// answer is the only writer on the connection: receive reads on it at the
// same time, which the protocol and the library allow. Each status asks for
// an answer, so that a dead connection is noticed.
func (r *Reader) answer(ctx context.Context) error {
	ticker := time.NewTicker(statusEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			_ = r.sendStatus(false) // what it would have confirmed comes again
			return nil
		case <-ticker.C:
		case <-r.ask:
		}
		if err := r.sendStatus(true); err != nil {
			return fmt.Errorf("send replication status: %w", err)
		}
	}
}

func (r *Reader) sendStatus(wantReply bool) error {
	position := LSN(r.confirmed.Load())
	return pglogrepl.SendStandbyStatusUpdate(context.Background(), r.conn, pglogrepl.StandbyStatusUpdate{
		WALWritePosition: position, WALFlushPosition: position, WALApplyPosition: position, ReplyRequested: wantReply,
	})
}

func (r *Reader) receive(ctx context.Context, handle func(Event) error) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, silenceLimit)
		message, err := r.conn.ReceiveMessage(waiting)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case pgconn.Timeout(err):
			return fmt.Errorf("%w for %v", ErrSilent, silenceLimit)
		case err != nil:
			return fmt.Errorf("receive from the WAL: %w", err)
		}
		switch m := message.(type) {
		case *pgproto3.CopyData:
			if err := r.data(m.Data, handle); err != nil {
				return err
			}
		case *pgproto3.ErrorResponse:
			return fmt.Errorf("receive from the WAL: %w", pgconn.ErrorResponseToPgError(m))
		case *pgproto3.CopyDone:
			return errors.New("receive from the WAL: the server ended the stream")
		}
	}
}

func (r *Reader) data(data []byte, handle func(Event) error) error {
	if len(data) == 0 {
		return nil
	}
	switch data[0] {
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		alive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		if err != nil {
			return fmt.Errorf("read keepalive: %w", err)
		}
		if alive.ReplyRequested {
			select {
			case r.ask <- struct{}{}:
			default: // one is due already
			}
		}
		if r.decoder.open { // inside a transaction, its rows are not all out yet
			return nil
		}
		return handle(Event{Position: alive.ServerWALEnd})
	case pglogrepl.XLogDataByteID:
		x, err := pglogrepl.ParseXLogData(data[1:])
		if err != nil {
			return fmt.Errorf("read WAL data: %w", err)
		}
		event, ok, err := r.decoder.decode(x.WALData)
		if err != nil {
			return fmt.Errorf("read WAL data at %s: %w", x.WALStart, err)
		}
		if ok {
			return handle(event)
		}
	}
	return nil
}
