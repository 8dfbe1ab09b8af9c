package settle

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// state is what the folder holds beside the records.
type state struct {
	path string
	// ID names the journal to the store. It is new where the records' numbers
	// began anew, or the store would take them for ones it has charged.
	ID string `json:"id"`
	// Intent is the end of the stretch that is being charged, Done that of the
	// last one that was: numbers of records, not included.
	Intent uint64 `json:"intent"`
	Done   uint64 `json:"done"`
	// Notes is what the numbers of this process's notes are above: they are above
	// those of any process before.
	Notes uint64 `json:"notes"`
}

// notesLeft is room for the notes that a process makes on one slot, 10,000 a
// second for a day, where the clock was set back.
const notesLeft = 1 << 30

// start begins a process. Numbers of notes go on from its clock, in µs since the
// epoch: no slot is used so often that they overtake it.
func (s *state) start(now time.Time) error {
	s.Notes = max(uint64(max(0, now.UnixMicro())), s.Notes+notesLeft)
	return s.save()
}

// loadState reads the folder's state, or begins one. A file that cannot be read
// begins a new one, too: what it said only concerns records not yet settled.
func loadState(dir string) (*state, error) {
	s := &state{path: filepath.Join(dir, "journal.json")}
	b, err := os.ReadFile(s.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the journal's state: %w", err)
	}
	if err == nil && json.Unmarshal(b, s) == nil && s.ID != "" {
		return s, nil
	}
	return s, s.renew()
}

// renew begins a new journal.
func (s *state) renew() error {
	s.ID, s.Intent, s.Done = rand.Text(), 0, 0
	return s.save()
}

// intend notes the end of the stretch that is about to be charged. Where it cannot
// be written nothing may be charged, and it is to be noted anew: the next process
// would charge the same records under another number.
func (s *state) intend(end uint64) error {
	if s.Intent == end {
		return nil
	}
	was := s.Intent
	s.Intent = end
	if err := s.save(); err != nil {
		s.Intent = was
		return err
	}
	return nil
}

// save replaces the file in one step, and returns once it is on disk.
func (s *state) save() error {
	b, _ := json.Marshal(s) // strings and numbers
	f, err := os.CreateTemp(filepath.Dir(s.path), "journal-*.tmp")
	if err != nil {
		return fmt.Errorf("write the journal's state: %w", err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		return fmt.Errorf("write the journal's state: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
