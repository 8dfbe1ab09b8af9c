package settle

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// oldFolder is the folder of a version before, which was killed when the store had
// charged five units and the answer was lost.
func oldFolder(t *testing.T, l *ledger) (dir string, was state) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir, l, nil)
	for range 5 {
		s.Append(noon, ofA(1))
	}
	l.fail = func() (bool, bool) { return false, true }
	if _, err := s.stretch(t.Context()); err == nil {
		t.Fatal("the answer was not lost")
	}
	l.fail = nil
	killed(t, s)
	if err := os.Remove(filepath.Join(dir, stateName)); err != nil {
		t.Fatal(err)
	}
	was = said(s.state)
	if was.intent != 5 {
		t.Fatalf("%+v", was)
	}
	writeOld(t, dir, was)
	return dir, was
}

// writeOld writes a state as versions before did.
func writeOld(t *testing.T, dir string, s state) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"id": s.id, "intent": s.intent, "done": s.done, "notes": s.notes})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, oldStateName), b)
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// newFile is what the file is made of.
func newFile(s state) []byte {
	s.seq = 1
	b, r := make([]byte, stateBytes), s.encode()
	copy(b[statePlace(s.seq):], r[:])
	return b
}

// half is the file as far as it is written beside.
func half(n int) func(*testing.T, string, state) {
	return func(t *testing.T, dir string, was state) {
		writeFile(t, filepath.Join(dir, stateName+".tmp"), newFile(was)[:n])
	}
}

// stale is our file as it was when an older version took over again.
func stale(s state) func(*testing.T, string, state) {
	return func(t *testing.T, dir string, _ state) { writeFile(t, filepath.Join(dir, stateName), newFile(s)) }
}

// upgradeSteps are what a kill at each step of an upgrade leaves, also of one that
// was rolled back before and is done again: the older version has begun a state of
// its own beside ours.
var upgradeSteps = map[string]func(t *testing.T, dir string, was state){
	"before":          func(*testing.T, string, state) {},
	"made":            half(0),
	"written in part": half(statePage + recordBytes/2),
	"written":         half(stateBytes),
	"in its place":    func(t *testing.T, dir string, was state) { writeFile(t, filepath.Join(dir, stateName), newFile(was)) },
	"older one behind": func(t *testing.T, dir string, was state) {
		writeFile(t, filepath.Join(dir, stateName), newFile(was))
		writeOld(t, dir, state{id: was.id})
	},
	"rolled back":                         stale(state{id: "of the version before the rollback", intent: 9, done: 9}),
	"rolled back, nothing charged before": stale(state{id: "of the version before the rollback"}),
	"rolled back, ours torn": func(t *testing.T, dir string, _ state) {
		writeFile(t, filepath.Join(dir, stateName), make([]byte, stateBytes))
	},
	// Ours was made, the other not removed yet: the version before went on with it.
	"rolled back in between": func(t *testing.T, dir string, was state) { stale(state{id: was.id})(t, dir, was) },
	"taken over in part": func(t *testing.T, dir string, was state) {
		s := state{id: "of the version before the rollback", notes: was.notes}
		b := newFile(s)
		was.seq = 2
		r := was.encode()
		copy(b[statePlace(was.seq):], r[:recordBytes/2])
		writeFile(t, filepath.Join(dir, stateName), b)
	},
	"old one removed": func(t *testing.T, dir string, was state) {
		writeFile(t, filepath.Join(dir, stateName), newFile(was))
		if err := os.Remove(filepath.Join(dir, oldStateName)); err != nil {
			t.Fatal(err)
		}
	},
}

// The process that takes over the state of a version before is killed at each of
// its steps. The next goes on with the same: what was charged is not charged once
// more, and numbers of notes are above all that there were.
func TestAnUpgradeSurvivesAKillAtEachStep(t *testing.T) {
	for name, step := range upgradeSteps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLedger()
				dir, was := oldFolder(t, l)
				step(t, dir, was)
				for range 2 {
					s := open(t, dir, l, nil)
					if s.state.id != was.id || s.state.intent != was.intent || s.state.done != was.done || s.state.notes < was.notes+notesLeft {
						t.Errorf("%+v of %+v", s.state, was)
					}
					was.notes = s.state.notes
					killed(t, s)
				}
				s := open(t, dir, l, nil)
				s.Append(noon, ofA(10))
				settle(t, s)
				l.want(t, map[string]int64{julyOfA: 15})
				for _, left := range []string{oldStateName, stateName + ".tmp"} {
					if _, err := os.Stat(filepath.Join(dir, left)); !os.IsNotExist(err) {
						t.Errorf("%s is there: %v", left, err)
					}
				}
			})
		})
	}
}

// A name that does not fit is said, and nothing is changed; what never was whole
// begins anew.
func TestAStateThatCannotBeTakenOver(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, oldStateName)
	long := state{id: strings.Repeat("x", maxID+1), intent: 3}
	writeOld(t, dir, long)
	if _, err := loadState(dir, slog.Default()); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "; 64 are") {
		t.Errorf("a name of 65 bytes: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, stateName)); !os.IsNotExist(err) {
		t.Errorf("a state was begun: %v", err)
	}
	long.id = long.id[1:]
	writeOld(t, dir, long)
	takesOver(t, dir, func(s state) bool { return s == long })
	for _, text := range []string{"", "{", `{"intent":3}`} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, oldStateName), []byte(text))
		takesOver(t, dir, func(s state) bool { return s.id != "" && s.intent == 0 })
	}
}

func takesOver(t *testing.T, dir string, right func(state) bool) {
	t.Helper()
	s, err := loadState(dir, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	if !right(said(s)) || !right(said(found(t, s.file))) {
		t.Errorf("%+v", s)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, oldStateName)); !os.IsNotExist(err) {
		t.Errorf("the old state is there: %v", err)
	}
}
