package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// loadState opens the folder's state, or begins one. One that cannot be read is
// begun anew, too: what it said only concerns records not yet settled.
func loadState(dir string, log *slog.Logger) (*state, error) {
	path := filepath.Join(dir, stateName)
	s, err := openState(path)
	damaged := errors.Is(err, errNoState)
	if damaged {
		log.Error("the journal's state is damaged and begun anew; what was being charged may be charged once more", "file", path)
	}
	if damaged || errors.Is(err, fs.ErrNotExist) {
		s, err = newState().create(path)
	}
	if err != nil {
		return nil, err
	}
	// Whoever made the file may have died before its name was on disk.
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// openState opens the file and reads what counts.
func openState(path string) (*state, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the journal's state: %w", err)
	}
	s, err := readState(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// readState goes on with what a file says. A process before may have died, or been
// told of an error, before the disk had that record: it is there before the other
// one is written over.
func readState(f stateFile) (*state, error) {
	b := make([]byte, stateBytes+1)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the journal's state: %w", err)
	}
	s, ok := decodeState(b[:n])
	if !ok {
		return nil, errNoState
	}
	s.file = f
	return s, s.write()
}

// create makes the file, with this state in it, and opens it.
func (s *state) create(path string) (*state, error) {
	s.seq = 1
	b := make([]byte, stateBytes)
	r := s.encode()
	copy(b[statePlace(s.seq):], r[:])
	if err := createFile(path, b); err != nil {
		return nil, fmt.Errorf("make the journal's state, for which the disk must have %d bytes left: %w", stateBytes, err)
	}
	return openState(path)
}

// createFile makes a file that holds these bytes. It is written beside and
// renamed, so that a kill in between leaves no half of one. All of the bytes are
// written, zeros too: none is a hole, for which a full disk has no room.
func createFile(path string, b []byte) error {
	f, err := os.OpenFile(path+".tmp", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+".tmp"))
	}
	return nil
}

// syncDir has the names in a folder on disk.
func syncDir(path string) error {
	dir, err := os.Open(path) //nolint:gosec // the journal's folder
	if err != nil {
		return fmt.Errorf("have the journal's folder on disk: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("have the journal's folder on disk: %w", err)
	}
	return nil
}
