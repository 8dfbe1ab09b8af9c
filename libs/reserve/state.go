package reserve

import (
	"errors"
	"fmt"
	"time"
)

// State is how far a reservation has come.
type State int

// States; the numbers of all but None and Committed are those in the store.
const (
	None      State = iota // nothing was charged
	Reserved               // charged, and open
	Released               // given back
	Expired                // given back by a sweep
	Void                   // released before anything was charged: nothing will be
	Committed              // charged what it cost
)

var stateNames = [...]string{"none", "reserved", "released", "expired", "void", "committed"}

// String returns the state's name.
func (s State) String() string { return stateNames[s] }

// Ended reports a state that nothing follows.
func (s State) Ended() bool { return s > Reserved }

// committedFrom is the state's number of 0 units committed; n units are n more.
const committedFrom = int64(Committed)

func stateOf(number int64) (s State, committed int64) {
	if number >= committedFrom {
		return Committed, number - committedFrom
	}
	return State(number), 0
}

// Reservation is one as it stands.
type Reservation struct {
	*Record

	State State
	// Committed is what it cost in the end, in units, of a committed one.
	Committed int64
	// EndedAt is when it ended, by the store's clock; zero while it is open.
	EndedAt time.Time
}

// number is the state's, as the store has it.
func (r *Reservation) number() int64 {
	if r.State == Committed {
		return committedFrom + r.Committed
	}
	return int64(r.State)
}

// Errors; beside them those of redisstore.Advance that say that the store is away
// (limit.ErrUnavailable, with limit.ErrRestoring perhaps), and
// limit.ErrCounterBroken.
var (
	// ErrUnknown: the caller has no such reservation, or it ended long ago.
	ErrUnknown = errors.New("no such reservation")
	// ErrAnother: the id belongs to another request's reservation.
	ErrAnother = errors.New("the id belongs to another request")
	// ErrTooMuch: more units than the service may be believed to cost.
	ErrTooMuch = errors.New("more units than the service's maxCost")
	// ErrTooMany: the tenant has as many open as it may, and this would be one more.
	ErrTooMany = errors.New("too many open reservations")
	// errBusy: attempts stood in each other's way, or periods ended, too often.
	errBusy = errors.New("the reservation could not be made: try again")
)

// EndedError says that a reservation has ended, and otherwise than was asked for.
type EndedError struct{ Reservation }

// Error implements error.
func (e *EndedError) Error() string {
	if e.State == Committed {
		return fmt.Sprintf("reservation was committed before, at a cost of %d", e.Committed)
	}
	return fmt.Sprintf("reservation is %s", e.State)
}
