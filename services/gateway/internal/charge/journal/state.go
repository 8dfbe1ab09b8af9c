package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
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
	// epoch is the store's, hashed, when intent was written.
	epoch uint64
	// process numbers the processes that opened the journal; boot is the hash of
	// when the machine of the last one was started.
	process, boot uint64
}

// stateFile is what the state lies in: *os.File.
type stateFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // it cannot fail
	return h.Sum64()
}

// start begins a process; it reports whether the machine has run since the last
// one's start.
func (s *state) start(boot uint64) (sameBoot bool, err error) {
	sameBoot = s.boot == boot
	s.process++
	s.boot = boot
	return sameBoot, s.save()
}

// newState begins a journal.
func newState() *state { return &state{id: rand.Text()} }

// renew begins a new journal in the place of this one; the next save writes it.
func (s *state) renew() { s.id, s.intent, s.done = rand.Text(), 0, 0 }

// intend notes the end of the stretch that is about to be charged, and the store's
// epoch. Where it cannot be written nothing may be charged, and it is to be noted
// anew: the next process would charge the same records under another number.
func (s *state) intend(end, epoch uint64) error {
	was, before := s.intent, s.epoch
	s.intent, s.epoch = end, epoch
	if err := s.save(); err != nil {
		s.intent, s.epoch = was, before
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

// The state's file has room for two records, a page each, so that no write of one
// touches the other. All of it is on disk from the start: a disk that is full
// takes what goes over blocks that are there.
const (
	stateName   = "state"
	statePage   = 4096
	stateBytes  = 2 * statePage
	maxID       = 64 // bytes of a journal's name
	numbers     = 6  // of a record
	recordBytes = numbers*8 + maxID + crc32.Size
)

// errNoState means that a file has no record that is whole.
var errNoState = errors.New("the journal's state is damaged")

func statePlace(seq uint64) int64 { return int64(seq%2) * statePage }

// encode writes a record: its numbers, the name, and the sum of these.
func (s *state) encode() (b [recordBytes]byte) {
	for i, n := range [numbers]uint64{s.seq, s.intent, s.done, s.epoch, s.process, s.boot} {
		binary.LittleEndian.PutUint64(b[8*i:], n)
	}
	copy(b[8*numbers:], s.id)
	binary.LittleEndian.PutUint32(b[8*numbers+maxID:], crc32.Checksum(b[:8*numbers+maxID], castagnoli))
	return b
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// decodeState reads the record with the higher number; ok is false where both
// were never written, or torn, and of what is no such file.
func decodeState(b []byte) (s *state, ok bool) {
	if len(b) != stateBytes {
		return nil, false
	}
	for page := range 2 {
		r := b[page*statePage:][:recordBytes]
		if binary.LittleEndian.Uint32(r[8*numbers+maxID:]) != crc32.Checksum(r[:8*numbers+maxID], castagnoli) {
			continue
		}
		seq := binary.LittleEndian.Uint64(r)
		if statePlace(seq) != int64(page)*statePage || ok && seq < s.seq {
			continue
		}
		s, ok = &state{
			seq: seq, intent: binary.LittleEndian.Uint64(r[8:]), done: binary.LittleEndian.Uint64(r[16:]),
			epoch: binary.LittleEndian.Uint64(r[24:]), process: binary.LittleEndian.Uint64(r[32:]), boot: binary.LittleEndian.Uint64(r[40:]),
			id: string(bytes.TrimRight(r[8*numbers:8*numbers+maxID], "\x00")),
		}, true
	}
	return s, ok
}
