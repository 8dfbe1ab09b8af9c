package reserve

import (
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

// News is a step that was taken: a reservation was made, or came to its end. It
// may be told more than once, by several processes; ID and At are the same then,
// and so are the units.
type News struct {
	Reservation
	// Step is the state that it came to by the step: Reserved, or how it ended.
	Step State
	// ID identifies the step: a UUIDv7 of At.
	ID string
	At time.Time
	// Amounts are of the charges that the step changed.
	Amounts []Amount

	uncharged []int
}

// Amount is what a step took from a counter; below 0 it gave back.
type Amount struct {
	*Charge

	Units int64
	// State is what the counter said after it, nil where it was somebody else who
	// took the step, and did not come to tell.
	State *limit.State
}

// Kept is what brings a reservation back to a store that has lost it.
func (n *News) Kept() Kept {
	k := Kept{Tenant: n.Tenant, ID: n.Record.ID, Attempt: n.Record.At, Number: n.number(), Uncharged: n.uncharged}
	if !n.EndedAt.IsZero() {
		k.EndedAt = n.EndedAt.UnixMicro()
	}
	if n.Step == Reserved {
		k.Number, k.EndedAt, k.Record = int64(Reserved), 0, n.encode()
	}
	return k
}

// Options of New. Store, Client and Tell are required.
type Options struct {
	Store *redisstore.Store
	// Client is the store's; KeyPrefix too.
	Client    redis.UniversalClient
	KeyPrefix string
	// Tell makes a step known. When it returned, the step counts as told, also after
	// a kill of this process; it is safe for concurrent use.
	Tell func(News)
	// MaxOpen is how many a tenant may have open at once, those that are on their
	// way to be charged among them; 0 is DefaultMaxOpen.
	MaxOpen int
	Log     *slog.Logger
}

// Book holds reservations. It is safe for concurrent use, and owns no goroutine.
// It remembers the records of its own attempts, for a store that loses them before
// any event tells of them; HandIn goes into the store's options.
type Book struct {
	o      Options
	memory memory
	// die is for tests, which end a step at a point by its error.
	die func(point string) error
}

// New returns a book; it does not connect.
func New(o Options) (*Book, error) {
	if o.Store == nil || o.Client == nil || o.Tell == nil {
		return nil, errors.New("reserve: Store, Client and Tell are required")
	}
	if o.MaxOpen == 0 {
		o.MaxOpen = DefaultMaxOpen
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Book{o: o, die: func(string) error { return nil }}, nil
}

// MaxOpen is how many reservations a tenant may have open at once.
func (b *Book) MaxOpen() int { return b.o.MaxOpen }

// Points between the steps of a book, for tests.
const (
	pointIntent   = "the intent is written"
	pointOthers   = "other slots are charged"
	pointCharged  = "it is charged"
	pointShadows  = "shadow rules are charged"
	pointTold     = "the charge is told"
	pointNoted    = "it is noted that it is told"
	pointEnded    = "it is ended"
	pointFollowed = "the others have followed"
	pointEndTold  = "the end is told"
	pointCleared  = "it is taken out of the index"
)
