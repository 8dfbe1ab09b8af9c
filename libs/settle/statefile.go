package settle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// The state's file has room for two records, a page each, so that no write of one
// touches the other. All of it is on disk from the start: a disk that is full
// takes what goes over blocks that are there.
const (
	stateName   = "journal.state"
	statePage   = 4096
	stateBytes  = 2 * statePage
	maxID       = 64 // bytes of a journal's name
	recordBytes = 4*8 + maxID + crc32.Size
)

// errNoState means that a file has no record that is whole.
var errNoState = errors.New("the journal's state is damaged")

func statePlace(seq uint64) int64 { return int64(seq%2) * statePage }

// encode writes a record: number, intent, done, notes, name, and the sum of these.
func (s *state) encode() (b [recordBytes]byte) {
	for i, n := range [...]uint64{s.seq, s.intent, s.done, s.notes} {
		binary.LittleEndian.PutUint64(b[8*i:], n)
	}
	copy(b[32:], s.id)
	binary.LittleEndian.PutUint32(b[32+maxID:], crc32.Checksum(b[:32+maxID], castagnoli))
	return b
}

// decodeState reads the record with the higher number; ok is false where both
// were never written, or torn, and of what is no such file.
func decodeState(b []byte) (s *state, ok bool) {
	if len(b) != stateBytes {
		return nil, false
	}
	for page := range 2 {
		r := b[page*statePage:][:recordBytes]
		if binary.LittleEndian.Uint32(r[32+maxID:]) != crc32.Checksum(r[:32+maxID], castagnoli) {
			continue
		}
		seq := binary.LittleEndian.Uint64(r)
		if statePlace(seq) != int64(page)*statePage || ok && seq < s.seq {
			continue
		}
		s, ok = &state{
			seq: seq, intent: binary.LittleEndian.Uint64(r[8:]), done: binary.LittleEndian.Uint64(r[16:]),
			notes: binary.LittleEndian.Uint64(r[24:]), id: string(bytes.TrimRight(r[32:32+maxID], "\x00")),
		}, true
	}
	return s, ok
}

// loadState opens the folder's state, or begins one. One that cannot be read is
// begun anew, too: what it said only concerns records not yet settled.
func loadState(dir string, log *slog.Logger) (*state, error) {
	old, err := oldState(dir)
	if err != nil {
		return nil, err
	}
	s, err := openOrBegin(filepath.Join(dir, stateName), old, log)
	if err != nil {
		return nil, err
	}
	if old != nil && old.newer(s) {
		err = s.goOnFrom(old)
	}
	// Whoever made the file may have died before its name was on disk.
	if err == nil {
		err = syncDir(dir)
	}
	if err == nil && old != nil {
		err = removeOldState(dir)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// openOrBegin opens the file, or makes one: of the state of a version before, where
// there is one.
func openOrBegin(path string, old *state, log *slog.Logger) (*state, error) {
	s, err := openState(path)
	damaged := errors.Is(err, errNoState)
	if !damaged && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if old != nil {
		return old.create(path)
	}
	if damaged {
		log.Error("the journal's state is damaged and begun anew; what was being charged may be charged once more", "file", path)
	}
	return newState().create(path)
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
