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
// which a full disk has no room. It is read where there is no other, and removed
// once that is on disk: whatever instant a process dies at, one of both says all.
const oldStateName = "journal.json"

// oldState is what a version before has left, or a new state.
func oldState(dir string) (*state, error) {
	path := filepath.Join(dir, oldStateName)
	b, err := os.ReadFile(path) //nolint:gosec // in the journal's folder
	if errors.Is(err, fs.ErrNotExist) {
		return newState(), nil
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

// removeOldState leaves no second state behind.
func removeOldState(dir string) error {
	err := os.Remove(filepath.Join(dir, oldStateName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the journal's state of a version before: %w", err)
	}
	return nil
}
