package journal

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// ledger keeps the promise of Store, and loses answers: what it charged, it may
// say it did not.
type ledger struct {
	mu      sync.Mutex
	last    map[string]uint64 // by guard: id and the first counter's owner
	charged map[string]int64
	at      map[string]time.Time
	fail    func() (before, after bool)
	broken  string
	clock   time.Time // noon where it is zero
	epoch   string
	// watch is called at each step of a settlement, with its answer on the way. What
	// a test takes of the folder then is what a kill leaves.
	watch func(step string)
}

func newLedger() *ledger {
	return &ledger{last: map[string]uint64{}, charged: map[string]int64{}, at: map[string]time.Time{}, epoch: "first"}
}

func (l *ledger) Clock() time.Time {
	if l.clock.IsZero() {
		return noon
	}
	return l.clock
}

func (l *ledger) Epoch() string { return l.epoch }

// lose forgets what was done, as a Redis that is emptied; of its counters it keeps
// what others saw.
func (l *ledger) lose(epoch string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.epoch = map[string]uint64{}, epoch
}

func (l *ledger) step(name string) {
	if l.watch != nil {
		l.watch(name)
	}
}

func (l *ledger) Settle(_ context.Context, once limit.Once, counters []limit.Counter) (broken []int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var before, after bool
	if l.fail != nil {
		before, after = l.fail()
	}
	if before {
		return nil, limit.ErrUnavailable
	}
	tag, _, _ := strings.Cut(counters[0].Key, ":")
	number := once.Seq - uint64(len(counters))
	for i, c := range counters {
		number++
		if l.broken != "" && strings.Contains(c.Key, l.broken) {
			broken = append(broken, i)
			continue
		}
		l.once(once.ID+tag, number, counters[i:i+1])
	}
	l.step("settled")
	if after {
		return nil, fmt.Errorf("%w: %w", limit.ErrUnavailable, limit.ErrUnanswered)
	}
	return broken, nil
}

// once charges the counters where the guard's number is below this one.
func (l *ledger) once(guard string, number uint64, counters []limit.Counter) {
	if number <= l.last[guard] {
		return
	}
	l.last[guard] = number
	for _, c := range counters {
		key := c.Key
		if c.Renews() {
			key += ":" + c.Calendar.At(c.At).Name()
		}
		l.charged[key] += c.Cost
		l.at[key] = c.At
	}
}

func (l *ledger) want(t *testing.T, want map[string]int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, n := range want {
		if l.charged[key] != n {
			t.Errorf("%s: %d charged, want %d", key, l.charged[key], n)
		}
	}
	for key, n := range l.charged {
		if _, named := want[key]; !named && n != 0 {
			t.Errorf("%s: %d charged, want nothing", key, n)
		}
	}
}

// image copies a journal's folder as it is: what a kill at this instant leaves.
func image(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}
