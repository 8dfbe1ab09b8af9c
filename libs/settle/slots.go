package settle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

// The holds lie in one file, a slot each. The file is sparse: a slot takes the
// pages it uses, and the file grows with the most requests at once.
const (
	slotBytes = 16 << 10
	headBytes = 32
	// slotClasses keep the slots of places apart, as far as they go: the notes of
	// a slot are a key of the store's in each place that the slot is used for.
	slotClasses = 64
)

// States of a slot.
const (
	slotFree   = iota
	slotHeld   // a request is in flight: slotHead.number is its note's
	slotMoving // it is given back: the record with slotHead.number in the journal
	slotOwed   // it is given back, and not in the journal yet
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// slotHead is the beginning of a slot. It is written in one call within a page,
// which a kill does not tear; a body that a kill tears has another sum.
type slotHead struct {
	state       uint32
	length, sum uint32 // of the body
	at          uint32 // where in the slot it begins; 0 is behind the head
	number      uint64
}

// put writes the head over the first bytes of b.
func (h slotHead) put(b []byte) {
	binary.LittleEndian.PutUint32(b, h.state)
	binary.LittleEndian.PutUint32(b[4:], h.length)
	binary.LittleEndian.PutUint32(b[8:], h.sum)
	binary.LittleEndian.PutUint32(b[12:], h.at)
	binary.LittleEndian.PutUint64(b[16:], h.number)
}

func decodeHead(b []byte) slotHead {
	return slotHead{
		state: binary.LittleEndian.Uint32(b), length: binary.LittleEndian.Uint32(b[4:]), sum: binary.LittleEndian.Uint32(b[8:]),
		at: binary.LittleEndian.Uint32(b[12:]), number: binary.LittleEndian.Uint64(b[16:]),
	}
}

// body is where the slot's body lies in it; ok is false of what no head says.
func (h slotHead) body() (b extent, ok bool) {
	b.from = max(int(h.at), headBytes)
	b.to = b.from + int(h.length)
	return b, b.to <= slotBytes
}

// extent is a part of a slot, in bytes from its beginning.
type extent struct{ from, to int }

// slotFile is what the slots lie in: *os.File.
type slotFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// holds is the file of slots; the journal's lock keeps other processes away. A
// slot belongs to who took it until it is free again.
type holds struct {
	file slotFile
	// name and base begin the names of the slots' notes and their numbers.
	name string
	base uint64

	mu    sync.Mutex
	slots []slotUse          // that there are in the file; they are numbered from 1
	empty [slotClasses][]int // free ones
	found []int              // free ones that a process before has left
	// stale ones could not be freed: what they hold is not wanted any more, and
	// is there until they are used again, or freed after all.
	stale []int
}

// slotUse is what a slot is used for.
type slotUse struct {
	class  int
	note   string // the name of its notes
	number uint64 // of the last one
	body   extent // what is there and still needed
}

func openHolds(dir, name string, base uint64) (*holds, error) {
	f, err := os.OpenFile(filepath.Join(dir, "holds"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open what was in flight: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open what was in flight: %w", err), f.Close())
	}
	there := (info.Size() + slotBytes - 1) / slotBytes
	return &holds{file: f, name: name, base: base, slots: make([]slotUse, there)}, nil
}

func (h *holds) close() error { return h.file.Close() }

func place(slot int) int64 { return int64(slot-1) * slotBytes }

// next takes a free slot for a place, and names the note it is for. There are
// never more slots than were taken at once.
func (h *holds) next(place int) (slot int, note string, number uint64) {
	class := place % slotClasses
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, free := range [...]*[]int{&h.empty[class], &h.found, &h.stale} {
		if slot = pop(free); slot != 0 {
			break
		}
	}
	if slot == 0 {
		h.slots = append(h.slots, slotUse{})
		slot = len(h.slots)
	}
	u := &h.slots[slot-1]
	if u.class = class; u.note == "" {
		u.note, u.number = h.name+":"+strconv.Itoa(slot), h.base
	}
	u.number++
	return slot, u.note, u.number
}

// pop takes the last one of free slots, 0 where there is none.
func pop(slots *[]int) (slot int) {
	if n := len(*slots); n > 0 {
		slot, *slots = (*slots)[n-1], (*slots)[:n-1]
	}
	return slot
}

func (h *holds) use(slot int) slotUse {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slots[slot-1]
}

func (h *holds) needs(slot int, body extent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots[slot-1].body = body
}

// write fills a slot: b is room for its head, and the body. What it holds already
// stays whole until the head names the new body, which lies beside it: a kill, or
// an error, leaves the one or the other.
func (h *holds) write(slot int, state uint32, number uint64, b []byte) error {
	text := b[headBytes:]
	head := slotHead{state: state, length: uint32(min(len(text), slotBytes)), sum: crc32.Checksum(text, castagnoli), number: number} //nolint:gosec // it is small
	old := h.use(slot).body
	if headBytes+len(text) > old.from {
		head.at = uint32(old.to) //nolint:gosec // within a slot
	}
	body, ok := head.body()
	if !ok {
		return fmt.Errorf("%d bytes do not fit a slot of %d", len(text), slotBytes)
	}
	head.put(b)
	at, whole := place(slot), b
	if old.to > 0 {
		whole = b[:headBytes]
		if _, err := h.file.WriteAt(text, at+int64(body.from)); err != nil {
			return fmt.Errorf("write a slot: %w", err)
		}
	}
	if _, err := h.file.WriteAt(whole, at); err != nil {
		return fmt.Errorf("write a slot: %w", err)
	}
	h.needs(slot, body)
	return nil
}

// mark has a slot say something else of the body that it has.
func (h *holds) mark(slot int, head slotHead) error {
	var b [headBytes]byte
	head.put(b[:])
	if _, err := h.file.WriteAt(b[:], place(slot)); err != nil {
		return fmt.Errorf("write a slot: %w", err)
	}
	return nil
}

// unused is the head of a free slot.
var unused [headBytes]byte

// free ends a slot. Where that cannot be written it is used again all the same,
// and what it holds is there until then; once one can be freed those that could
// not are, too.
func (h *holds) free(slot int) error {
	err := h.blank(slot)
	for again := err == nil; again; {
		h.mu.Lock()
		stale := pop(&h.stale)
		h.mu.Unlock()
		again = stale != 0 && h.blank(stale) == nil
	}
	return err
}

func (h *holds) blank(slot int) error {
	_, err := h.file.WriteAt(unused[:], place(slot))
	h.mu.Lock()
	defer h.mu.Unlock()
	u := &h.slots[slot-1]
	u.body = extent{}
	if err != nil {
		h.stale = append(h.stale, slot)
		return fmt.Errorf("free a slot: %w", err)
	}
	h.empty[u.class] = append(h.empty[u.class], slot)
	return nil
}

// read returns what a slot holds; ok is false of one that is free or torn. The
// request of a torn one was never charged, nor forwarded.
func (h *holds) read(slot int) (head slotHead, body []byte, ok bool, err error) {
	head, err = h.head(slot)
	lies, ok := head.body()
	if err != nil || head.state == slotFree || !ok {
		return slotHead{}, nil, false, err
	}
	body = make([]byte, lies.to-lies.from)
	n, err := h.file.ReadAt(body, place(slot)+int64(lies.from))
	if err != nil && !errors.Is(err, io.EOF) {
		return slotHead{}, nil, false, fmt.Errorf("read what was in flight: %w", err)
	}
	if n < len(body) || crc32.Checksum(body, castagnoli) != head.sum {
		return slotHead{}, nil, false, nil
	}
	h.needs(slot, lies)
	return head, body, true, nil
}

// head reads a slot's head; one that is not there is that of a free slot.
func (h *holds) head(slot int) (slotHead, error) {
	var b [headBytes]byte
	switch n, err := h.file.ReadAt(b[:], place(slot)); {
	case err != nil && !errors.Is(err, io.EOF):
		return slotHead{}, fmt.Errorf("read what was in flight: %w", err)
	case n < headBytes:
		return slotHead{}, nil
	}
	return decodeHead(b[:]), nil
}

// takenBefore are the slots that a process before has left, by state. Those it
// has left free are used again, and behind the last of the others the file ends.
func (h *holds) takenBefore() (taken map[uint32][]int, err error) {
	taken = map[uint32][]int{}
	last := 0
	for slot := 1; slot <= len(h.slots); slot++ {
		head, err := h.head(slot)
		if err != nil {
			return nil, err
		}
		if head.state == slotFree {
			h.found = append(h.found, slot)
			continue
		}
		last = slot
		taken[head.state] = append(taken[head.state], slot)
	}
	if err := h.file.Truncate(int64(last) * slotBytes); err != nil {
		return nil, fmt.Errorf("clear what was in flight: %w", err)
	}
	h.found = slices.DeleteFunc(h.found, func(slot int) bool { return slot > last })
	h.slots = h.slots[:last]
	return taken, nil
}
