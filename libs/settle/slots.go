package settle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// The holds lie in one file, a slot each. The file is sparse: a slot takes the
// pages it uses, and the file grows with the most requests at once.
const (
	slotBytes = 16 << 10
	headBytes = 32
	// maxHeld is the most counters of a hold: the bits of slotHead.keep.
	maxHeld = 64
)

// States of a slot.
const (
	slotFree   = iota
	slotHeld   // a request is in flight
	slotMoving // it is given back: the record with slotHead.number in the journal
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// slotHead is the beginning of a slot. It is written in one call within a page,
// which a kill does not tear; the body is written once, with the first head, and
// has a sum.
type slotHead struct {
	state        uint32
	length, sum  uint32 // of the body
	number, keep uint64
}

func (h slotHead) encode(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, h.state)
	b = binary.LittleEndian.AppendUint32(b, h.length)
	b = binary.LittleEndian.AppendUint32(b, h.sum)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, h.number)
	return binary.LittleEndian.AppendUint64(b, h.keep)
}

func decodeHead(b []byte) slotHead {
	return slotHead{
		state: binary.LittleEndian.Uint32(b), length: binary.LittleEndian.Uint32(b[4:]), sum: binary.LittleEndian.Uint32(b[8:]),
		number: binary.LittleEndian.Uint64(b[16:]), keep: binary.LittleEndian.Uint64(b[24:]),
	}
}

// holds is the file of slots; the journal's lock keeps other processes away. A
// slot belongs to who took it until it is free again.
type holds struct {
	file *os.File

	mu    sync.Mutex
	empty []int
	slots int // that were ever taken; they are numbered from 1
}

func openHolds(dir string) (*holds, error) {
	f, err := os.OpenFile(filepath.Join(dir, "holds"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open what was in flight: %w", err)
	}
	return &holds{file: f}, nil
}

func (h *holds) close() error { return h.file.Close() }

func place(slot int) int64 { return int64(slot-1) * slotBytes }

// take writes a body into a free slot.
func (h *holds) take(body []byte) (slot int, head slotHead, err error) {
	if len(body) > slotBytes-headBytes {
		return 0, slotHead{}, fmt.Errorf("%d bytes do not fit a slot of %d", len(body), slotBytes)
	}
	head = slotHead{state: slotHeld, length: uint32(len(body)), sum: crc32.Checksum(body, castagnoli)}
	slot = h.next()
	b := head.encode(make([]byte, 0, headBytes+len(body)))
	if _, err := h.file.WriteAt(append(b, body...), place(slot)); err != nil {
		// What is there now may be whole: no other request may have the slot.
		return 0, slotHead{}, errors.Join(fmt.Errorf("write a slot: %w", err), h.free(slot))
	}
	return slot, head, nil
}

func (h *holds) next() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.empty); n > 0 {
		slot := h.empty[n-1]
		h.empty = h.empty[:n-1]
		return slot
	}
	h.slots++
	return h.slots
}

// mark writes a slot's head anew; its body stays.
func (h *holds) mark(slot int, head slotHead) error {
	if _, err := h.file.WriteAt(head.encode(make([]byte, 0, headBytes)), place(slot)); err != nil {
		return fmt.Errorf("mark a slot: %w", err)
	}
	return nil
}

// free ends a slot. One that cannot be written is not used again.
func (h *holds) free(slot int) error {
	if err := h.mark(slot, slotHead{}); err != nil {
		return err
	}
	h.mu.Lock()
	h.empty = append(h.empty, slot)
	h.mu.Unlock()
	return nil
}

// each calls visit with every slot of a state that is whole. One that is torn is
// left out: its request was never forwarded.
func (h *holds) each(state uint32, visit func(slot int, head slotHead, body []byte) error) error {
	info, err := h.file.Stat()
	if err != nil {
		return fmt.Errorf("read what was in flight: %w", err)
	}
	b := make([]byte, slotBytes)
	for slot := 1; place(slot) < info.Size(); slot++ {
		n, err := h.file.ReadAt(b, place(slot))
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read what was in flight: %w", err)
		}
		if n < headBytes {
			continue
		}
		head := decodeHead(b)
		if head.state != state {
			continue
		}
		end := headBytes + int(min(head.length, slotBytes))
		if end > n || crc32.Checksum(b[headBytes:end], castagnoli) != head.sum {
			continue
		}
		if err := visit(slot, head, b[headBytes:end]); err != nil {
			return err
		}
	}
	return nil
}

// clear begins the file anew; nothing may be held.
func (h *holds) clear() error {
	h.empty, h.slots = nil, 0
	if err := h.file.Truncate(0); err != nil {
		return fmt.Errorf("clear what was in flight: %w", err)
	}
	return nil
}
