package settle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
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
	number      uint64
}

// put writes the head over the first bytes of b.
func (h slotHead) put(b []byte) {
	binary.LittleEndian.PutUint32(b, h.state)
	binary.LittleEndian.PutUint32(b[4:], h.length)
	binary.LittleEndian.PutUint32(b[8:], h.sum)
	binary.LittleEndian.PutUint64(b[16:], h.number)
}

func decodeHead(b []byte) slotHead {
	return slotHead{
		state: binary.LittleEndian.Uint32(b), length: binary.LittleEndian.Uint32(b[4:]), sum: binary.LittleEndian.Uint32(b[8:]),
		number: binary.LittleEndian.Uint64(b[16:]),
	}
}

// holds is the file of slots; the journal's lock keeps other processes away. A
// slot belongs to who took it until it is free again.
type holds struct {
	file *os.File
	// name and base begin the names of the slots' notes and their numbers.
	name string
	base uint64

	mu    sync.Mutex
	empty [slotClasses][]int
	slots []slotUse // that were ever taken; they are numbered from 1
}

// slotUse is what a slot is used for.
type slotUse struct {
	class  int
	note   string // the name of its notes
	number uint64 // of the last one
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
	// Slots that are there already are used again when they have been freed.
	there := (info.Size() + slotBytes - 1) / slotBytes
	return &holds{file: f, name: name, base: base, slots: make([]slotUse, there)}, nil
}

func (h *holds) close() error { return h.file.Close() }

func place(slot int) int64 { return int64(slot-1) * slotBytes }

// next takes a free slot for a place, and names the note it is for.
func (h *holds) next(place int) (slot int, note string, number uint64) {
	class := place % slotClasses
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.empty[class]); n > 0 {
		slot = h.empty[class][n-1]
		h.empty[class] = h.empty[class][:n-1]
	} else {
		h.slots = append(h.slots, slotUse{class: class})
		slot = len(h.slots)
	}
	u := &h.slots[slot-1]
	if u.note == "" {
		u.note, u.number = h.name+":"+strconv.Itoa(slot), h.base
	}
	u.number++
	return slot, u.note, u.number
}

// write fills a slot: b is room for its head, and the body.
func (h *holds) write(slot int, state uint32, number uint64, b []byte) error {
	if len(b) > slotBytes {
		return fmt.Errorf("%d bytes do not fit a slot of %d", len(b), slotBytes)
	}
	body := b[headBytes:]
	slotHead{state: state, length: uint32(len(body)), sum: crc32.Checksum(body, castagnoli), number: number}.put(b)
	if _, err := h.file.WriteAt(b, place(slot)); err != nil {
		return fmt.Errorf("write a slot: %w", err)
	}
	return nil
}

// unused is the head of a free slot.
var unused [headBytes]byte

// free ends a slot. One that cannot be written is not used again.
func (h *holds) free(slot int) error {
	if _, err := h.file.WriteAt(unused[:], place(slot)); err != nil {
		return fmt.Errorf("free a slot: %w", err)
	}
	h.mu.Lock()
	class := h.slots[slot-1].class
	h.empty[class] = append(h.empty[class], slot)
	h.mu.Unlock()
	return nil
}

// read returns what a slot holds; ok is false of one that is free or torn. The
// request of a torn one was never charged, nor forwarded.
func (h *holds) read(slot int) (head slotHead, body []byte, ok bool, err error) {
	b := make([]byte, slotBytes)
	n, err := h.file.ReadAt(b, place(slot))
	if err != nil && !errors.Is(err, io.EOF) {
		return slotHead{}, nil, false, fmt.Errorf("read what was in flight: %w", err)
	}
	if n < headBytes {
		return slotHead{}, nil, false, nil
	}
	head = decodeHead(b)
	end := headBytes + int(min(head.length, slotBytes))
	if head.state == slotFree || end > n || crc32.Checksum(b[headBytes:end], castagnoli) != head.sum {
		return slotHead{}, nil, false, nil
	}
	return head, b[headBytes:end], true, nil
}

// each calls visit with every slot of a state.
func (h *holds) each(state uint32, visit func(slot int, head slotHead, body []byte) error) error {
	for slot := 1; slot <= len(h.slots); slot++ {
		head, body, ok, err := h.read(slot)
		if err == nil && ok && head.state == state {
			err = visit(slot, head, body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clear begins the file anew; nothing may be held.
func (h *holds) clear() error {
	h.empty, h.slots = [slotClasses][]int{}, nil
	if err := h.file.Truncate(0); err != nil {
		return fmt.Errorf("clear what was in flight: %w", err)
	}
	return nil
}
