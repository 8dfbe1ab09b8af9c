package keeper

import (
	"slices"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// mark says that an arming needs no word to Postgres while use is below quiet:
// what lies under that is announced, what lies above has been seen from below.
type mark struct {
	limit int64
	list  uint64
	quiet int64
}

// maxMarks bounds the limits remembered of one counter; each top-up of a
// wallet makes another.
const maxMarks = 4

// watch keeps what charges show of thresholds until it is in Postgres. Nearly
// every charge ends at a mark: one look-up and no allocation. It is safe for
// concurrent use.
type watch struct {
	most int // counters that marks are kept of

	mu      sync.Mutex
	marks   map[string][]mark // by counter; one each, mostly
	waiting map[arming]*sighting
	// woken gets a token when something waits.
	woken chan struct{}
}

func newWatch(most int) *watch {
	return &watch{most: most, marks: map[string][]mark{}, waiting: map[arming]*sighting{}, woken: make(chan struct{}, 1)}
}

// event takes in an event's charges.
func (w *watch) event(e *usage.Event) {
	for i := range e.Charges {
		if c := &e.Charges[i]; judged(c) {
			w.charge(c, e.TS.UTC(), e.ID)
		}
	}
}

func (w *watch) charge(c *usage.Charge, at time.Time, decision string) {
	a := armingOf(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.marks[a.counter] {
		if m.limit == a.limit && m.list == a.list && usedBy(c) < m.quiet {
			return
		}
	}
	s := w.waiting[a]
	if s == nil {
		s = newSighting(a, c)
		w.waiting[a] = s
	}
	s.see(c, at, decision)
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// take hands over what waits.
func (w *watch) take() map[arming]*sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.waiting
	w.waiting = map[arming]*sighting{}
	return taken
}

// giveBack returns what could not be written; meanwhile more may have come.
func (w *watch) giveBack(taken []*sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range taken {
		if later := w.waiting[s.arming]; later != nil {
			s.follow(later)
		}
		w.waiting[s.arming] = s
	}
}

// settled notes up to which use an arming is quiet now; 0 leaves it open. Where
// something was announced, the counter's other armings have to be looked at
// anew: to be announced once more they must be seen from below again.
func (w *watch) settled(a arming, quiet int64, announced bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.marks) >= w.most {
		clear(w.marks) // they are found again in Postgres
	}
	marks := slices.DeleteFunc(w.marks[a.counter], func(m mark) bool {
		return announced || m.limit == a.limit && m.list == a.list
	})
	if quiet > 0 {
		if len(marks) == maxMarks {
			marks = slices.Delete(marks, 0, 1)
		}
		marks = append(marks, mark{limit: a.limit, list: a.list, quiet: quiet})
	}
	if len(marks) == 0 {
		delete(w.marks, a.counter)
		return
	}
	w.marks[a.counter] = marks
}

// forget drops all marks: another keeper may have written meanwhile.
func (w *watch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.marks)
}

func (w *watch) size() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}
