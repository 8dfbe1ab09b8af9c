package journal

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/limit"
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

// gatherFor is how long records are gathered where none of them is to be charged.
const gatherFor = 10 * time.Millisecond

// Store charges: *redisstore.Store.
type Store interface {
	// Settle charges the counters whatever their state, each once for each number
	// of an id; n counters take the n numbers up to it, which grow. It leaves out
	// those at the places of broken, and is called until it returns no error.
	// limit.ErrUnanswered says that the store may have charged them.
	Settle(ctx context.Context, once limit.Once, counters []limit.Counter) (broken []int, err error)
	// Clock is the store's own, and never before it.
	Clock() time.Time
	// Epoch names what the store has not lost: another one, and a call that was
	// sent before may be forgotten with what it charged. Empty while that is not
	// known.
	Epoch() string
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
	// Boot names the machine since it started; nil asks Linux for it.
	Boot func() string
}

// Journal is what is owed, on disk, and what settles it. Append, Begin, End and
// GiveBack are safe for concurrent use; Run may run once.
type Journal struct {
	o       Options
	spool   *spool.Spool
	sync    func() error // has the spool on disk
	state   *state
	metrics metrics
	// appending lets one record into the journal at a time: a request's ended
	// record comes behind its begun record.
	appending sync.Mutex
	scratch   []byte
	begun     uint64              // requests of this process
	open      map[uint64]struct{} // those in flight
	done      atomic.Uint64       // the mark that all is settled up to

	// Of Run alone: the records of requests in flight that were read, oldest first;
	// how many calls of the stretch under way were answered; and whether one was
	// not, by this process or the one before.
	held       []held
	answered   int
	unanswered bool
}

// Append notes what a request at that time is still to be charged, or where a
// cost is below 0, given back. A counter's own At goes before that time. It never
// blocks on I/O, and keeps nothing of its arguments; what it returned from
// survives a kill of the process.
func (j *Journal) Append(at time.Time, counters []limit.Counter) {
	j.append(newRecord(at, counters).encode())
}

func (j *Journal) append(b []byte) {
	if b == nil {
		return
	}
	j.appending.Lock()
	defer j.appending.Unlock()
	_ = j.spool.Append(b) // drops are the spool's to count
}

// Pending is how many records are not settled yet, those that only say that a
// request is in flight included.
func (j *Journal) Pending() uint64 {
	next, done := j.spool.NextSeq(), j.done.Load()
	return next - min(next, done)
}

// Mark is the end of the journal as it stands. Settled reports whether all that
// was in it at a mark is charged or given back, or dropped; what an earlier
// process left is behind the first Mark.
func (j *Journal) Mark() uint64 { return j.spool.NextSeq() }

// Settled says so of a Mark of this process.
func (j *Journal) Settled(mark uint64) bool { return j.done.Load() >= mark }

// Close closes the journal. What is pending is settled by the next process.
func (j *Journal) Close() error {
	return errors.Join(j.state.close(), j.spool.Close()) // the spool last: it holds the folder's lock
}
