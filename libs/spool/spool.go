package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults and bounds of Options.
const (
	DefaultSizeBytes = 64 << 20
	DefaultShards    = 4
	// MinShardBytes is the smallest ring; a record may take a quarter of one.
	MinShardBytes = 16 << 10
)

// ErrLocked is returned by Open while another process holds the folder.
var ErrLocked = errors.New("spool is in use by another process")

// Options of Open. Dir is required.
type Options struct {
	// Dir holds the spool's files; created with mode 0700 where missing. It
	// belongs on a volume that outlives the process.
	Dir string
	// SizeBytes bounds the file; default DefaultSizeBytes. After a change the
	// records that wait are carried over.
	SizeBytes int64
	// Shards is the number of rings; default DefaultShards. More of them means
	// that concurrent appends rarely meet; 1 keeps all records in order.
	Shards int
	// Log gets what recovery found; nil is slog.Default.
	Log *slog.Logger
	// Now names files that are moved aside; nil is time.Now.
	Now func() time.Time
}

// Record is one record as it was appended. Its bytes belong to the reader.
type Record struct {
	// Key is what the record was appended with; empty for Append.
	Key, Value []byte
	// Seq numbers the records of one ring, from 0.
	Seq uint64
	at  Mark
}

// Before is the mark in front of the record: Advance to it keeps the record, and
// acknowledges what came before in its ring.
func (r *Record) Before() Mark { return r.at }

// Mark is a place in the spool that the reader got with its records. The zero
// Mark is no place.
type Mark struct {
	shard    int
	pos, seq uint64
}

// Stats is a snapshot; rings are read one after the other.
type Stats struct {
	// Pending is how many records are not acknowledged, PendingBytes what they
	// take of CapacityBytes, frames included.
	Pending, PendingBytes, CapacityBytes uint64
	// Dropped is how many records were never acknowledged because the spool was
	// full, they were too large or damaged; since the file was made.
	Dropped uint64
}

// Spool is a bounded queue of records on disk. Append may be called from any
// number of goroutines; Next, Wait, Advance and Rewind belong to one reader.
type Spool struct {
	shards []*shard
	files  *files
	turn   int // the ring Next looks at first

	waiting atomic.Bool
	wake    chan struct{}

	closeOnce sync.Once
	closeErr  error
}

// Open locks the folder, recovers what an earlier process left and returns the
// spool. A damaged file is moved aside with an error in the log, and a new one
// begun: a spool never keeps its process from starting.
func Open(o Options) (*Spool, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("spool options: %w", err)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make spool folder: %w", err)
	}
	f, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	s, err := open(o, f)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return s, nil
}

// Check says what Open would refuse of the options, nil without anything. It
// touches no disk.
func (o Options) Check() error { return o.complete() }

func (o *Options) complete() error {
	if o.Dir == "" {
		return errors.New("no folder given")
	}
	if o.SizeBytes == 0 {
		o.SizeBytes = DefaultSizeBytes
	}
	if o.Shards == 0 {
		o.Shards = DefaultShards
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Shards < 1 || o.Shards > maxShards {
		return fmt.Errorf("%d shards: 1 to %d are possible", o.Shards, maxShards)
	}
	if g := geometryFor(o.SizeBytes, o.Shards); g.ringBytes < MinShardBytes || g.ringBytes > maxRingBytes {
		return fmt.Errorf("%d bytes in %d shards: a shard has %d to %d bytes", o.SizeBytes, o.Shards, MinShardBytes, maxRingBytes)
	}
	return nil
}

// Append stores a record without a key; see AppendKeyed.
func (s *Spool) Append(record []byte) (dropped int) { return s.AppendKeyed("", record) }

// AppendKeyed copies the key and the record into the spool and returns how
// many records were dropped for it: old ones of a full ring, or this one (1)
// when it is larger than MaxRecord or the spool is closed. It never waits for
// the reader or for I/O; the record may be reused afterwards.
func (s *Spool) AppendKeyed(key string, record []byte) (dropped int) {
	sum := payloadSum(key, record)
	r := s.lockShard()
	switch {
	case r.closed:
		r.mu.Unlock()
		return 1
	case len(key)+len(record) > s.MaxRecord():
		r.head.dropped++
		r.head.store(r.page)
		r.mu.Unlock()
		return 1
	}
	dropped = r.append(key, record, sum)
	r.mu.Unlock()
	// The tail is published before the flag is read, and the reader sets the
	// flag before it looks at the tails: one of both sees the other.
	if s.waiting.Load() && s.waiting.CompareAndSwap(true, false) {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return dropped
}

// lockShard returns a locked ring: a random one that nobody holds, if there is.
func (s *Spool) lockShard() *shard {
	n := uint32(len(s.shards))
	first := uint32(0)
	if n > 1 {
		first = rand.Uint32N(n)
	}
	for i := range n {
		if r := s.shards[(first+i)%n]; r.mu.TryLock() {
			return r
		}
	}
	r := s.shards[first]
	r.mu.Lock()
	return r
}

// NextSeq is the number that the next record of the only ring gets: it tells
// whether a record was kept before a kill. Of a spool with more rings it says
// nothing.
func (s *Spool) NextSeq() uint64 {
	r := s.shards[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tailSeq
}

// MaxRecord is the largest key and value together, bytes.
func (s *Spool) MaxRecord() int { return len(s.shards[0].ring)/4 - frameHeader }

// Next returns up to limit records of one ring that were not returned since
// Open or Rewind, oldest first, and the mark behind them. With no record there
// it returns none at once.
func (s *Spool) Next(limit int) ([]Record, Mark) {
	for range s.shards {
		i := s.turn
		s.turn = (s.turn + 1) % len(s.shards)
		if records, mark := s.shards[i].read(i, limit, nil); len(records) > 0 {
			return records, mark
		}
	}
	return nil, Mark{}
}

// Wait returns nil when Next has something, or the context's error.
func (s *Spool) Wait(ctx context.Context) error {
	for {
		if s.readable() {
			return nil
		}
		s.waiting.Store(true)
		if s.readable() {
			return nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Spool) readable() bool {
	for _, r := range s.shards {
		if r.tail.Load() > r.cursor {
			return true
		}
	}
	return false
}

// Advance acknowledges everything up to the mark in its ring; marks of a ring
// are acknowledged in the order Next gave them.
func (s *Spool) Advance(m Mark) {
	if m.pos > 0 {
		s.shards[m.shard].advance(m)
	}
}

// Sync returns once what was appended and acknowledged before is on disk, where a
// crash of the machine leaves it, too. It waits for the disk, and appends do not
// wait for it. It belongs to the reader, who does not call it beside Close.
func (s *Spool) Sync() error {
	for _, r := range s.shards {
		r.rewrite()
	}
	if err := s.files.sync(); err != nil {
		return fmt.Errorf("have the spool on disk: %w", err)
	}
	return nil
}

// Rewind makes Next start again at the acknowledged mark.
func (s *Spool) Rewind() {
	for _, r := range s.shards {
		r.cursor = 0 // read lifts it to the mark
	}
}

// Stats may be called at any time, also after Close.
func (s *Spool) Stats() Stats {
	var st Stats
	for _, r := range s.shards {
		r.mu.Lock()
		st.Pending += r.tailSeq - r.head.seq
		st.PendingBytes += r.tail.Load() - r.head.pos
		st.CapacityBytes += uint64(len(r.ring))
		st.Dropped += r.head.dropped
		r.mu.Unlock()
	}
	return st
}

// Close waits for running appends, unmaps the file and frees the folder. What
// is pending stays on disk.
func (s *Spool) Close() error {
	s.closeOnce.Do(func() {
		for _, r := range s.shards {
			r.mu.Lock()
			r.closed = true
			r.mu.Unlock()
		}
		s.closeErr = s.files.close()
	})
	return s.closeErr
}
