package settle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Versions before kept the state as JSON in a file that each write replaced, for
// which a full disk has no room. It is carried over, and removed once that is on
// disk: whatever instant a process dies at, one of both says all. Such a version
// that follows this one (a rollback) leaves ours as it is and begins a file of its
// own, so that the next upgrade finds both: see newer.
const oldStateName = "journal.json"

// oldState is what a version before has left; nil where it left nothing, and a new
// state where that cannot be read.
func oldState(dir string) (*state, error) {
	path := filepath.Join(dir, oldStateName)
	b, err := os.ReadFile(path) //nolint:gosec // in the journal's folder
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none, as is usual
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal's state: %w", err)
	}
	var old struct {
		ID     string `json:"id"`
		Intent uint64 `json:"intent"`
		Done   uint64 `json:"done"`
		Notes  uint64 `json:"notes"`
	}
	if json.Unmarshal(b, &old) != nil || old.ID == "" {
		return newState(), nil // as those versions did
	}
	if len(old.ID) > maxID {
		// None was ever made. Under another name what was begun is charged twice.
		return nil, fmt.Errorf("%s names the journal with %d bytes; %d are the most there can be", path, len(old.ID), maxID)
	}
	return &state{id: old.ID, intent: old.Intent, done: old.Done, notes: old.Notes}, nil
}

// newer reports whether the state of a version before goes on from ours, and not
// ours from it. Under one name both only grow. Under another it was begun after a
// rollback: ours gets no other name while the one it was taken from is still there.
func (s *state) newer(ours *state) bool {
	return s.id != ours.id || s.done > ours.done || s.intent > ours.intent
}

// goOnFrom takes another state over, in the file that is there: all of it or, where
// that is torn, nothing. Numbers of notes stay above those of both.
func (s *state) goOnFrom(old *state) error {
	s.id, s.intent, s.done, s.notes = old.id, old.intent, old.done, max(s.notes, old.notes)
	return s.save()
}

// removeOldState leaves no second state behind, after a crash of the machine either:
// ours may have another name by then, and the other one would be taken for newer.
func removeOldState(dir string) error {
	if err := os.Remove(filepath.Join(dir, oldStateName)); err != nil {
		return fmt.Errorf("remove the journal's state of a version before: %w", err)
	}
	return syncDir(dir)
}
