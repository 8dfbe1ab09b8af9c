package settle

import (
	"crypto/rand"
	"fmt"
	"io"
	"time"
)

// state is what the folder holds beside the records, and the file it lies in.
type state struct {
	file stateFile
	// seq numbers what was written, and says where: see save.
	seq uint64
	// id names the journal to the store. It is new where the records' numbers
	// began anew, or the store would take them for ones it has charged.
	id string
	// intent is the end of the stretch that is being charged, done that of the
	// last one that was: numbers of records, not included.
	intent, done uint64
	// notes is what the numbers of this process's notes are above: they are above
	// those of any process before.
	notes uint64
}

// stateFile is what the state lies in: *os.File.
type stateFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
}

// notesLeft is room for the notes that a process makes on one slot, 10,000 a
// second for a day, where the clock was set back.
const notesLeft = 1 << 30

// start begins a process. Numbers of notes go on from its clock, in µs since the
// epoch: no slot is used so often that they overtake it.
func (s *state) start(now time.Time) error {
	s.notes = max(uint64(max(0, now.UnixMicro())), s.notes+notesLeft)
	return s.save()
}

// newState begins a journal.
func newState() *state { return &state{id: rand.Text()} }

// renew begins a new journal in the place of this one.
func (s *state) renew() error {
	s.id, s.intent, s.done = newState().id, 0, 0
	return s.save()
}

// intend notes the end of the stretch that is about to be charged. Where it cannot
// be written nothing may be charged, and it is to be noted anew: the next process
// would charge the same records under another number.
func (s *state) intend(end uint64) error {
	if s.intent == end {
		return nil
	}
	was := s.intent
	s.intent = end
	if err := s.save(); err != nil {
		s.intent = was
		return err
	}
	return nil
}

// save writes the state, and returns once it is on disk. It goes over the older
// of the file's two records: the last one that is known to be on disk stays as it
// is until there is another, however often a write fails, or is torn.
func (s *state) save() error {
	s.seq++
	if err := s.write(); err != nil {
		s.seq--
		return err
	}
	return nil
}

// write puts the state in the place of its number.
func (s *state) write() error {
	b := s.encode()
	if _, err := s.file.WriteAt(b[:], statePlace(s.seq)); err != nil {
		return fmt.Errorf("write the journal's state: %w", err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("write the journal's state: %w", err)
	}
	return nil
}

func (s *state) close() error { return s.file.Close() }
