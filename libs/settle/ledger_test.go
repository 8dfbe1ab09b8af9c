package settle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// notes are how a ledger decides.
type notes struct {
	deny   bool
	clock  time.Time // noon where it is zero
	clocks []time.Time
	// watch is called at each step of a decision or of what takes it back: before it
	// is done, and with its answer on the way. What a test takes of the folder then
	// is what a kill leaves.
	watch func(step string)
	// lose says of a decision that its answer is lost, and whether it is late:
	// charged by arrive only.
	lose func() (lost, late bool)
	late []func()
}

func (*ledger) Place(string) int { return 0 }

func (l *ledger) Clock() time.Time {
	if l.clock.IsZero() {
		return noon
	}
	return l.clock
}

func (l *ledger) step(name string) {
	if l.watch != nil {
		l.watch(name)
	}
}

func (l *ledger) DecideNoted(_ context.Context, counters []limit.Counter, note limit.Note) (limit.Decision, bool, error) {
	l.step("asked")
	counters = slices.Clone(counters)
	for i := range counters {
		if counters[i].At = note.At; note.Name == "" {
			counters[i].At = l.Clock()
		}
	}
	var lost, late bool
	if l.lose != nil {
		lost, late = l.lose()
	}
	charge := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if note.Name == "" {
			delete(l.last, "")
			return l.once("", 1, counters)
		}
		return l.once(note.Name, note.Charge(), counters)
	}
	switch {
	case len(l.clocks) > 0: // it is not when the note says
		l.clock, l.clocks = l.clocks[0], l.clocks[1:]
		return limit.Decision{}, false, fmt.Errorf("%w: %w", limit.ErrUnavailable, limit.ErrOtherPeriod)
	case l.deny:
		l.step("answered")
		return limit.Decision{}, false, nil
	case late:
		l.late = append(l.late, func() { charge() })
	case !charge():
		return limit.Decision{}, false, limit.ErrUnavailable
	}
	l.step("answered")
	if lost {
		return limit.Decision{}, true, limit.ErrUnavailable
	}
	return limit.Decision{Allowed: true, Now: note.At}, false, nil
}

// arrive has the calls come in whose answers were given up.
func (l *ledger) arrive() {
	for _, call := range l.late {
		call()
	}
	l.late = nil
}

func (l *ledger) TakeBack(_ context.Context, note limit.Note, counters []limit.Counter) (left []int, err error) {
	l.step("taking back")
	var before, after bool
	if l.fail != nil {
		before, after = l.fail()
	}
	if before {
		return nil, limit.ErrUnavailable
	}
	l.mu.Lock()
	if l.last[note.Name] < note.Charge() {
		l.once(note.Name, note.End(), nil)
	}
	broken := l.last[note.Name] < note.End() && slices.ContainsFunc(counters, func(c limit.Counter) bool {
		return l.broken != "" && strings.Contains(c.Key, l.broken)
	})
	if broken {
		for i := range counters {
			left = append(left, i)
		}
	} else {
		l.once(note.Name, note.End(), counters)
	}
	l.mu.Unlock()
	l.step("taken back")
	if after {
		return nil, limit.ErrUnavailable
	}
	return left, nil
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
	// CopyFS keeps no mode that would matter, and the lock is not copied.
	if _, err := os.Stat(filepath.Join(to, "holds")); err != nil {
		t.Fatal(err)
	}
	return to
}
