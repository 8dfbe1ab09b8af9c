package settle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/sampledlog"
	"github.com/sluice-platform/sluice/libs/spool"
)

// Bounds of one stretch. The numbers its calls use are those of its last
// record, which has room for 32 counters of each of so many records.
const (
	stretchRecords = 4096
	callCounters   = 32
	callNumbers    = 64      // numbers a call reserves, for the most counters it may come to have
	stretchNumbers = 1 << 18 // numbers a record of the journal reserves
)

// DefaultSizeBytes is the journal's size: some 60,000 requests.
const DefaultSizeBytes = 16 << 20

// Store charges: *redisstore.Store.
type Store interface {
	// Settle charges the counters whatever their state, each once for each number
	// of an id; n counters take the n numbers up to it, which grow. It leaves out
	// those at the places of broken, and is called until it returns no error.
	Settle(ctx context.Context, id string, number uint64, counters []limit.Counter) (broken []int, err error)
	// DecideNoted charges the counters, all or none, and notes it in that step; a
	// note of no name is none. Where open, what is judged together may be charged
	// though the decision does not pass.
	DecideNoted(ctx context.Context, counters []limit.Counter, note limit.Note) (d limit.Decision, open bool, err error)
	// TakeBack gives the counters what the note's decision charged them, once, and
	// has it charge nothing from then on. It is called until it returns no error;
	// the counters at the places of left were charged and have not been given back.
	TakeBack(ctx context.Context, note limit.Note, counters []limit.Counter) (left []int, err error)
	// Clock is the store's own, and never before it.
	Clock() time.Time
	// Place tells by number which counters lie together.
	Place(counter string) int
}

// Options of Open. Dir, Gateway and Store are required.
type Options struct {
	// Dir holds the journal; on a volume that outlives the process, and of this
	// gateway's own.
	Dir       string
	SizeBytes int64
	// Gateway names the gateway in the store.
	Gateway    string
	Store      Store
	Registerer prometheus.Registerer
	Log        *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Settler is a journal and what empties it. Append is safe for concurrent use;
// Run may run once.
type Settler struct {
	o        Options
	spool    *spool.Spool
	sync     func() error // has the spool on disk
	state    *state
	metrics  metrics
	holds    *holds
	writers  sync.Pool // of *writer
	open     *openSlots
	complain *sampledlog.Log
	// appending lets one record into the journal at a time: a hold that moves
	// there says beforehand what number its record gets.
	appending sync.Mutex
	done      atomic.Uint64 // the mark that all is settled up to
}

// Open opens or begins the journal in its folder. Close it after Run returned.
func Open(o Options) (*Settler, error) {
	if o.SizeBytes <= 0 {
		o.SizeBytes = DefaultSizeBytes
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	// One shard: the records' numbers are the stretch's.
	sp, err := spool.Open(spool.Options{Dir: o.Dir, SizeBytes: o.SizeBytes, Shards: 1, Log: o.Log, Now: o.Now})
	if err != nil {
		return nil, fmt.Errorf("journal of what passed uncounted: %w", err)
	}
	s := &Settler{o: o, spool: sp, sync: sp.Sync, writers: sync.Pool{New: newWriter}, open: newOpenSlots(), complain: sampledlog.New(o.Log, o.Now)}
	if s.state, err = loadState(o.Dir, o.Log); err != nil {
		return nil, errors.Join(err, sp.Close())
	}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// begin takes over what the processes before have left.
func (s *Settler) begin() (err error) {
	if err := s.state.start(s.o.Now()); err != nil {
		return err
	}
	if s.spool.Stats().Pending == 0 {
		s.done.Store(s.spool.NextSeq())
	}
	if s.holds, err = openHolds(s.o.Dir, s.o.Gateway+"/"+s.state.id, s.state.notes); err != nil {
		return err
	}
	if s.metrics, err = newMetrics(s.o.Registerer, s.spool.Stats, s.Pending); err != nil {
		return fmt.Errorf("settle metrics: %w", err)
	}
	return s.endHeld()
}

// Append notes what a request at that time is still to be charged, or where a
// cost is below 0, given back. A counter's own At goes before that time. It never
// blocks on I/O, and keeps nothing of its arguments; what it returned from
// survives a kill of the process.
func (s *Settler) Append(at time.Time, counters []limit.Counter) {
	s.append(newRecord(at, counters).encode())
}

func (s *Settler) append(b []byte) {
	if b == nil {
		return
	}
	s.appending.Lock()
	defer s.appending.Unlock()
	_ = s.spool.Append(b) // drops are the spool's to count
}

// Pending is how many requests are not charged or given back yet.
func (s *Settler) Pending() uint64 { return s.spool.Stats().Pending + uint64(s.open.len()) }

// Mark is the end of the journal as it stands. Settled reports whether all that
// was in it at a mark is charged or given back, or dropped; what an earlier
// process left is behind the first Mark.
func (s *Settler) Mark() uint64 { return s.spool.NextSeq() }

// Settled says so of a Mark of this process.
func (s *Settler) Settled(mark uint64) bool { return s.done.Load() >= mark }

// Close closes the journal. What is pending is charged by the next process, and
// what is still held is given back by it.
func (s *Settler) Close() error {
	var err error
	if s.holds != nil { // or Open has come no further
		err = s.holds.close()
	}
	return errors.Join(err, s.state.close(), s.spool.Close()) // the spool last: it holds the folder's lock
}

// Run charges what the journal holds, and has taken back what was charged to
// requests without an end, until ctx is cancelled; then it returns nil. The store
// away is waited for.
func (s *Settler) Run(ctx context.Context) error {
	var open sync.WaitGroup
	open.Go(func() { s.takeBackOpen(ctx) })
	defer open.Wait()
	pause := backoff.Backoff{Max: time.Second}
	for s.spool.Wait(ctx) == nil {
		n, err := s.stretch(ctx)
		if err == nil {
			s.metrics.settled.Add(float64(n))
			pause.Reset()
			continue
		}
		s.spool.Rewind()
		if ctx.Err() != nil {
			break
		}
		level := slog.LevelDebug // the breaker has said that the store is away
		if !errors.Is(err, limit.ErrUnavailable) {
			level = slog.LevelError
		}
		s.o.Log.Log(ctx, level, "what passed uncounted is not charged yet; trying again", "pending", s.Pending(), "cause", err)
		if pause.Wait(ctx) != nil {
			break
		}
	}
	return nil
}

// stretch charges the next stretch, or the one that was begun before, and
// returns how many requests it held.
func (s *Settler) stretch(ctx context.Context) (int, error) {
	records, mark := s.spool.Next(stretchRecords)
	if len(records) == 0 {
		return 0, nil
	}
	first, end := records[0].Seq, records[len(records)-1].Seq+1
	switch {
	case first < s.state.done:
		// The records' numbers began anew: the journal's file was replaced.
		if err := s.state.renew(); err != nil {
			return 0, err
		}
	case first < s.state.intent && s.state.intent < end:
		// Begun, and perhaps charged, when fewer records were there.
		end = s.state.intent
		s.spool.Rewind()
		if records, mark = s.spool.Next(int(end - first)); len(records) == 0 {
			return 0, nil
		}
	}
	// The state is on disk at once. What it speaks of is so before: else a crash of
	// the machine left numbers to other records, or a mark that was passed.
	if err := s.sync(); err != nil {
		return 0, err
	}
	if err := s.state.intend(end); err != nil {
		return 0, err
	}
	sums := newSums(s.o.Now(), s.o.Store.Clock(), s.o.Log)
	for _, r := range records {
		sums.add(r.Value)
	}
	if err := s.charge(ctx, end, sums.counters()); err != nil {
		return 0, err
	}
	s.spool.Advance(mark)
	s.done.Store(end)
	if err := s.sync(); err != nil {
		return 0, err
	}
	s.state.done = end
	return len(records), s.state.save()
}

// charge has the store charge a stretch, some counters a call.
func (s *Settler) charge(ctx context.Context, end uint64, counters []limit.Counter) error {
	id := s.o.Gateway + "/" + s.state.id
	number := end * stretchNumbers
	for len(counters) > 0 {
		n := min(callCounters, len(counters))
		if err := s.call(ctx, id, number, counters[:n]); err != nil {
			return err
		}
		counters, number = counters[n:], number+callNumbers
	}
	return nil
}

// call charges some counters. One that is broken is left out.
func (s *Settler) call(ctx context.Context, id string, number uint64, counters []limit.Counter) error {
	broken, err := s.o.Store.Settle(ctx, id, number, counters)
	for _, i := range broken {
		s.metrics.broken.Inc()
		s.o.Log.Error("what passed uncounted cannot be charged", "counter", counters[i].Key, "units", counters[i].Cost, "error", limit.ErrCounterBroken)
	}
	return err
}
