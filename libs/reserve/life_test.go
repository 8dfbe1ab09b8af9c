package reserve

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// life is what a reservation should have come to.
type life struct {
	state State
	cost  int64
	until time.Time
}

// lives are some reservations on one quota, and the model of them.
type lives struct {
	*bench
	dice  *rand.Rand
	quota limit.Counter
	byID  map[string]*life
}

const (
	lifeLimit = 50
	lifeOpen  = 3
)

// Random lives of some reservations, on two books, come to what they should.
func TestReservationsEqualModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		b := newBench(t).bounded(lifeOpen)
		l := &lives{bench: b, dice: rand.New(rand.NewPCG(seed, 19)), quota: b.quota(lifeLimit), byID: map[string]*life{}} //nolint:gosec // a test's
		for range 40 {
			switch id := string(rune('a' + l.dice.IntN(5))); l.dice.IntN(7) {
			case 0, 1, 2:
				l.reserve(id, l.dice.Int64N(30)+1)
			case 3:
				l.commit(id, l.dice.Int64N(40))
			case 4:
				l.release(id)
			default:
				l.pass([]time.Duration{time.Second, 25 * time.Second, time.Minute}[l.dice.IntN(3)])
			}
			l.compare(seed)
		}
	}
}

func (l *lives) used() (n int64) {
	for _, one := range l.byID {
		n += one.cost
	}
	return n
}

func (l *lives) open() (n int64) {
	for _, one := range l.byID {
		if one.state == Reserved {
			n++
		}
	}
	return n
}

func (l *lives) reserve(id string, cost int64) {
	l.t.Helper()
	used := l.used()
	m, err := l.bench.reserve(l.dice.IntN(2), wish{id: id, cost: cost, counters: []limit.Counter{l.quota}})
	switch one := l.byID[id]; {
	case one != nil && one.state.Ended():
		if !errors.As(err, new(*EndedError)) {
			l.t.Fatalf("%s has ended: %v", id, err)
		}
	case one == nil && l.open() == lifeOpen:
		if !errors.Is(err, ErrTooMany) {
			l.t.Fatalf("%d are open, and %s: %+v, %v", lifeOpen, id, m, err)
		}
	case one != nil:
		if err != nil || !m.Repeated || m.Cost != one.cost {
			l.t.Fatalf("%s is there: %+v, %v", id, m, err)
		}
	case err != nil || m.Decision.Allowed != (used+cost <= lifeLimit):
		l.t.Fatalf("%d of %d used, %d more: %+v, %v", used, lifeLimit, cost, m.Decision, err)
	case m.Decision.Allowed:
		l.byID[id] = &life{Reserved, cost, l.now.Add(time.Minute)}
	}
}

func (l *lives) commit(id string, cost int64) {
	l.t.Helper()
	_, repeated, err := l.books[l.dice.IntN(2)].Commit(context.Background(), ofAcme, id, cost)
	l.ended(id, Committed, cost, repeated, err)
}

func (l *lives) release(id string) {
	l.t.Helper()
	_, repeated, err := l.books[l.dice.IntN(2)].Release(context.Background(), ofAcme, id)
	l.ended(id, Released, 0, repeated, err)
}

// ended compares what an end was answered, and notes it.
func (l *lives) ended(id string, s State, cost int64, repeated bool, err error) {
	l.t.Helper()
	one := l.byID[id]
	switch {
	case one == nil:
		if !errors.Is(err, ErrUnknown) {
			l.t.Fatalf("%s was never there: %v", id, err)
		}
	case one.state == Reserved:
		if err != nil || repeated {
			l.t.Fatalf("%s is open: %t, %v", id, repeated, err)
		}
		one.state, one.cost = s, cost
	case one.state == s && one.cost == cost:
		if err != nil || !repeated {
			l.t.Fatalf("%s once more: %t, %v", id, repeated, err)
		}
	default:
		if !errors.As(err, new(*EndedError)) {
			l.t.Fatalf("%s has ended otherwise: %v", id, err)
		}
	}
}

func (l *lives) pass(d time.Duration) {
	l.t.Helper()
	l.wait(d)
	l.sweep(l.dice.IntN(2))
	for _, one := range l.byID {
		if one.state == Reserved && !l.now.Before(one.until) {
			one.state, one.cost = Expired, 0
		}
	}
}

func (l *lives) compare(seed uint64) {
	l.t.Helper()
	open := l.open()
	if got, told := l.bench.used(l.quota)[0], l.tolds("m0"); got != l.used() || told != got || l.due() != open || l.places() != open {
		l.t.Fatalf("seed %d: %d used, %d told, want %d; %d due and %d places, want %d", seed, got, told, l.used(), l.due(), l.places(), open)
	}
}
