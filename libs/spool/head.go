package spool

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// head is the persistent state of one ring besides its frames.
type head struct {
	gen uint64 // grows with each write; the whole slot with the higher one counts
	// pos and seq are the reader's mark: the oldest frame not acknowledged.
	pos, seq uint64
	dropped  uint64
}

const (
	slotSize  = 64
	slotBytes = 36 // four numbers and their CRC
)

var errHead = errors.New("both copies of a ring's head are damaged")

// store writes the head into the slot that does not hold the current one.
func (h *head) store(page []byte) {
	h.gen++
	b := page[(h.gen%2)*slotSize:]
	binary.LittleEndian.PutUint64(b, h.gen)
	binary.LittleEndian.PutUint64(b[8:], h.pos)
	binary.LittleEndian.PutUint64(b[16:], h.seq)
	binary.LittleEndian.PutUint64(b[24:], h.dropped)
	binary.LittleEndian.PutUint32(b[32:], crc32.Checksum(b[:32], castagnoli))
}

func loadHead(page []byte) (head, error) {
	var best head
	found := false
	for i := range 2 {
		b := page[i*slotSize:][:slotBytes]
		if crc32.Checksum(b[:32], castagnoli) != binary.LittleEndian.Uint32(b[32:]) {
			continue
		}
		h := head{
			gen:     binary.LittleEndian.Uint64(b),
			pos:     binary.LittleEndian.Uint64(b[8:]),
			seq:     binary.LittleEndian.Uint64(b[16:]),
			dropped: binary.LittleEndian.Uint64(b[24:]),
		}
		if h.pos%frameAlign == 0 && h.gen > 0 && (!found || h.gen > best.gen) {
			best, found = h, true
		}
	}
	if !found {
		return head{}, errHead
	}
	return best, nil
}
