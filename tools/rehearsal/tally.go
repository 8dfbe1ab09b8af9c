package rehearsal

import (
	"slices"
	"sync"
	"time"
)

// keyTally is what happened to one key in one run. It is safe for concurrent use.
type keyTally struct {
	// shares: readers of it wait for one load. Else each has its own, and waits for nobody's.
	shares bool

	mu      sync.Mutex
	counts  bool // what comes before the run, and what it cut off, is not counted
	took    []time.Duration
	waiting int   // reads under way
	waits   []int // of them, at the end of each load
	loads   int
	running int
	peak    int
	stale   int
	errors  int

	version   int64     // what may be read since changedAt; 0 while nothing has changed
	changedAt time.Time // for whoever asks from then on
	staleFor  time.Duration
}

func (t *keyTally) count(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts = on
}

func (t *keyTally) loadBegins() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running++
	if t.counts {
		t.loads++
		t.peak = max(t.peak, t.running)
	}
}

func (t *keyTally) loadEnds() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.counts && t.shares {
		t.waits = append(t.waits, t.waiting)
	}
}

// changed says that the key's version is due to whoever asks after at.
func (t *keyTally) changed(version int64, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version, t.changedAt = version, at
}

func (t *keyTally) readBegins() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting++
}

// readEnds counts a read that was due and began then; cut says that the run's end ended it.
func (t *keyTally) readEnds(due, began time.Time, a answer, err error, cut bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting--
	if !t.counts {
		return
	}
	t.took = append(t.took, now.Sub(due))
	switch {
	case cut:
	case err != nil:
		t.errors++
	case a.stale:
		t.stale++
	}
	if err == nil && t.version > a.version && began.After(t.changedAt) {
		t.staleFor = max(t.staleFor, now.Sub(t.changedAt))
	}
}

// died forgets a read whose process ended.
func (t *keyTally) died() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting--
}

// percentile of sorted values; zero where there are none.
func percentile[T int | time.Duration](sorted []T, share float64) T {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// result is the tally as it is reported.
func (t *keyTally) result(name string, most int) KeyResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.Sort(t.took)
	slices.Sort(t.waits)
	return KeyResult{
		Key: name, Reads: len(t.took), Loads: t.loads, PeakLoads: t.peak, WaitersP99: percentile(t.waits, 0.99),
		P50: Millis(percentile(t.took, 0.5)), P99: Millis(percentile(t.took, 0.99)),
		Stale: t.stale, Errors: t.errors, StaleFor: Millis(t.staleFor), Stampeded: t.peak > most,
	}
}
