package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/breaker"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
	"github.com/sluice-platform/sluice/libs/period"
)

// The actors, from the store down to what one decision asks of one server.

// Store decides on Redis. It is safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	o      Options
	now    func() time.Time
	// instance tells this process from others by its name.
	instance string
	clock    clock
	text     string // the script
	sha      string
	counts   counts
	memory   *memory
	// epochKey is of one Redis.
	epochKey string
	// attention has Run look sooner; whole is what it saw last.
	attention chan struct{}
	whole     atomic.Bool

	// servers has the lanes to each server; of one Redis there is one.
	servers servers
	// running are the goroutines of lanes and probes. background is their
	// context: a call once begun does not end with the request that began it.
	running    sync.WaitGroup
	background context.Context
	closing    chan struct{}
	close      sync.Once

	lanePool sync.Pool // of *lane
	partPool sync.Pool // of *part
	askPool  sync.Pool // of *asking
}

// servers are the lanes of each server: of one Redis (alone, or the master that
// Sentinels name) one, of a Cluster one a master.
type servers struct {
	s       *Store
	cluster *redis.ClusterClient // nil: one Redis, and all keys are slot 0
	only    *lanes               // of a Cluster those to no server that is known

	mu     sync.Mutex
	byAddr map[string]*lanes
	routes [epoch.NumSlots]atomic.Pointer[route]
	// epochs are those that calls name, by slot.
	epochs [epoch.NumSlots]atomic.Pointer[string]
}

type route struct {
	to    *lanes
	until int64 // ns
}

// lanes are the calls under way to one server, a few at once. A decision that
// finds a free lane is sent at once; those that come while all are busy travel
// together in the next call of the first that is free. The lock is held to
// append and to take, never while anything is sent.
type lanes struct {
	s *Store
	// server is the client of the server's address; nil of a Cluster's lanes to no
	// server that is known. bound has the connections that calls are sent on.
	server  *redis.Client
	bound   atomic.Pointer[bound]
	breaker *breaker.Breaker
	refusal refusal

	mu      sync.Mutex
	waiting queue
	busy    int
	// began holds when each call under way was sent; the oldest tells silence.
	began map[*lane]time.Time
}

// lane is one goroutine at work, and what it uses again.
type lane struct {
	batches [pipelineBatches]batch
	used    int
	id      string // of its idempotency record; a new one after a call was lost
	number  int64
	sent    uint64 // how often it took what waits
}

// bound is a client whose connections all lead to one process of Redis. A TCP
// connection never outlives its process, so a call that names an epoch of this
// process's run id is run by this process, or by none: a connection to another
// process, whose append-only file may have brought the epoch back, is refused
// before anything is sent on it.
type bound struct {
	client *redis.Client
	runID  atomic.Pointer[string] // of the first connection
}

// batch is one call: parts that travel together, each key named once. Parts
// are joined in the order they came in, and judged in that order.
type batch struct {
	slot     int
	counters int
	parts    []*part
	keys     []string
	places   map[keyKind]int
	body     []byte
	args     []any
	text     bool      // send the script, not its name
	again    bool      // nothing ran, and it is to be sent once more
	first    time.Time // when it was sent first
	began    time.Time // and last
	took     error
	reply    string
	epochKey string // of its quotas; empty without quotas
	epoch    string // that the call names
	once     once   // where its answer is found should it be lost
	resent   bool   // its answer is lost, and asked for
	moved    bool   // a Cluster has said that its slot is elsewhere
}

// keyKind is a key and what it is taken for.
type keyKind struct {
	key  string
	kind byte
}

// once is the idempotency record of a call: the script writes the call's number
// and its answer under the key, together with the charges, and answers a call of
// the same number with it. A lane has one call under way, so each lane has one
// record; it lives for an hour.
type once struct {
	key    string
	number int64 // 0: none
}

// asking is one decision under way, on the goroutine that asked for it.
type asking struct {
	parts   []*part
	started time.Time
	timer   *time.Timer
	// patient: a settlement, which waits as long as the connection does.
	patient bool
}

// States of a part.
const (
	partWaiting  int32 = iota
	partAnswered       // its result stands
	partLeft           // nobody waits; whoever answers it lets go of it
)

// part is what one decision asks of one server: groups of counters, each all or
// nothing, laid out for the script. It belongs to its decision until it is
// queued, and then to both: the decision may leave it, a lane may answer it,
// and the second of the two lets go of it. It copies what it needs.
type part struct {
	slot   int
	to     *lanes // those of the slot's server
	owner  int    // whose turn it takes while it queues: the slot of its first key
	next   *part  // the owner's next one in the queue
	groups []group
	// counters and bounds are those of all groups, in order; index says which
	// of the decision's counters each is.
	counters []limit.Counter
	bounds   []period.Bounds
	index    []int
	totals   []totalsAt
	steps    []stepAt
	// keys are named once each; body is the groups' numbers, in which the byte
	// offsets of places name keys of this part, of deadlines hold deadlines.
	keys      []string
	kinds     []byte // of keys, as the script has them
	body      []byte
	places    []int
	deadlines []int

	state atomic.Int32
	sent  atomic.Int64 // when it was sent last, ns; 0 while it waits
	done  chan struct{}
	// The result: an error, or the groups' answers.
	err    error
	reply  string // this part's share
	now    int64  // Redis's clock, µs
	settle bool   // a settlement: nobody undoes it when its answer is late
	until  int64  // of an advance: when it may take place last by Redis's clock, µs; 0 is no end
	giving bool   // gives back, and is owed where it is not known to have been done
	lost   bool   // its answer is; a receipt says what became of it
	quotas bool   // it charges or refunds some
	marked bool   // it has quotas, if only to look at: they have to be whole
	memory *memory
	clock  *clock
}

// group is counters judged all or nothing.
type group struct {
	from, to int  // in part.counters
	apart    bool // judged alone, outside the decision's all or nothing
	guards   int  // guards that stand before the counters: a settlement's, or an advance's steps
	again    bool // asked once more in another part; this answer is void
	status   int
	at       int // where its counters' answers begin, in numbers of the reply
}

// stepAt is a step of an advance: a key of the part, and what its number becomes.
type stepAt struct {
	key int // in part.keys
	to  int64
}

// totalsAt is where a counter's totals are remembered; of quotas only.
type totalsAt struct {
	key    int // in part.keys
	expiry int64
}
