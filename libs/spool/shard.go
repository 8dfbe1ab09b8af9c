package spool

import (
	"hash/crc32"
	"sync"
	"sync/atomic"
	"unsafe"
)

// readChunk bounds how long the reader holds a ring's lock: one copy of that
// many bytes, some microseconds.
const readChunk = 32 << 10

// shard is one ring. Positions are logical and only grow; a position modulo
// the ring's length is an offset in it.
type shard struct {
	mu     sync.Mutex
	closed bool
	page   []byte // mapped, holds the head's two slots
	ring   []byte // mapped, holds the frames

	head    head
	tailSeq uint64
	tail    atomic.Uint64 // written under mu; read by the waiting reader without

	// cursor is where the reader goes on; only the reader touches it.
	cursor uint64
}

// damage is what recovery had to skip.
type damage struct{ bytes, records uint64 }

// recover finds the tail: it walks the frames from the mark, and goes on
// behind a damaged stretch if whole frames of this lap follow it. A torn frame
// at the tail has none behind it.
func (s *shard) recover() (damage, error) {
	h, err := loadHead(s.page)
	if err != nil {
		return damage{}, err
	}
	s.head, s.tailSeq, s.cursor = h, h.seq, h.pos
	var lost damage
	pos, limit := h.pos, h.pos+uint64(len(s.ring))
	for pos < limit {
		f, ok := validFrame(s.ring, pos)
		if !ok {
			next, found := s.resync(pos, limit)
			if !found {
				break
			}
			lost.bytes += next.pos - pos
			lost.records += next.seq - s.tailSeq
			s.skip(pos, next.pos-pos)
			pos, f = next.pos, next
		}
		pos += f.size()
		s.tailSeq = f.seq
		if f.kind == kindRecord {
			s.tailSeq++
		}
	}
	s.tail.Store(pos)
	if lost.records > 0 {
		s.head.dropped += lost.records
		s.head.store(s.page)
	}
	return lost, nil
}

func (s *shard) resync(from, limit uint64) (frame, bool) {
	for pos := from + frameAlign; pos < limit; pos += frameAlign {
		if f, ok := validFrame(s.ring, pos); ok && f.seq >= s.tailSeq {
			return f, true
		}
	}
	return frame{}, false
}

// skip writes a frame that covers n bytes at pos.
func (s *shard) skip(pos, n uint64) {
	f := frame{length: uint32(n), pos: pos, seq: s.tailSeq, kind: kindSkip}
	f.encode(s.ring[pos%uint64(len(s.ring)):], 0)
}

// append copies a record in and returns how many were dropped for it; the
// caller holds mu. sum is the CRC of key and value.
func (s *shard) append(key string, value []byte, sum uint32) (dropped int) {
	need := recordSize(len(key) + len(value))
	pos, length := s.tail.Load(), uint64(len(s.ring))
	rest := length - pos%length
	gap := uint64(0)
	if rest < need {
		gap = rest
	}
	dropped = s.makeRoom(pos + gap + need)
	if gap > 0 {
		s.skip(pos, gap)
		pos += gap
	}
	b := s.ring[pos%length:]
	n := copy(b[frameHeader:], key)
	copy(b[frameHeader+n:], value)
	f := frame{length: uint32(len(key) + len(value)), keyLen: uint32(len(key)), pos: pos, seq: s.tailSeq, kind: kindRecord}
	f.encode(b, sum)
	s.tailSeq++
	s.tail.Store(pos + need)
	return dropped
}

// makeRoom drops the oldest frames until the ring can reach up to end. The
// head is stored before the dropped frames are overwritten, so that a kill in
// between finds a mark that points at a whole frame.
func (s *shard) makeRoom(end uint64) (dropped int) {
	before := s.head.pos
	for end-s.head.pos > uint64(len(s.ring)) {
		f := decodeFrame(s.ring[s.head.pos%uint64(len(s.ring)):])
		s.head.pos += f.size()
		s.head.seq = f.seq
		if f.kind == kindRecord {
			s.head.seq++
			dropped++
		}
	}
	if s.head.pos != before {
		s.head.dropped += uint64(dropped)
		s.head.store(s.page)
	}
	return dropped
}

// read takes up to limit records from the cursor on. The bytes of a chunk are
// copied under the lock and cut into records outside it.
func (s *shard) read(index int, limit int, dst []Record) ([]Record, Mark) {
	mark := Mark{shard: index}
	for n := 0; n < limit; {
		chunk := s.copyChunk()
		if len(chunk) == 0 {
			break
		}
		at := uint64(0)
		for n < limit && at+frameHeader <= uint64(len(chunk)) {
			b := chunk[at:]
			f := decodeFrame(b)
			if f.kind == kindRecord {
				if f.size() > uint64(len(b)) {
					break
				}
				body := b[frameHeader : frameHeader+f.length : frameHeader+f.length]
				dst = append(dst, Record{Key: body[:f.keyLen:f.keyLen], Value: body[f.keyLen:], Seq: f.seq, at: Mark{shard: index, pos: f.pos, seq: f.seq}})
				n++
				mark.seq = f.seq + 1
			} else {
				mark.seq = f.seq
			}
			at += f.size()
			s.cursor = f.pos + f.size()
			mark.pos = s.cursor
		}
	}
	return dst, mark
}

// copyChunk returns the bytes from the cursor on, up to the end of a lap and
// readChunk, but at least one whole frame; empty when nothing is there.
func (s *shard) copyChunk() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.cursor = max(s.cursor, s.head.pos)
	length := uint64(len(s.ring))
	at := s.cursor % length
	n := min(s.tail.Load()-s.cursor, length-at, readChunk)
	if n == 0 {
		return nil
	}
	if f := decodeFrame(s.ring[at:]); f.kind == kindRecord {
		n = max(n, f.size())
	}
	return append([]byte(nil), s.ring[at:at+n]...)
}

func (s *shard) advance(m Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || m.pos <= s.head.pos {
		return // dropped in the meantime
	}
	s.head.pos, s.head.seq = m.pos, m.seq
	s.head.store(s.page)
}

// rewrite stores the head once more: the kernel does not try again what a disk has
// refused, and calls it written.
func (s *shard) rewrite() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.head.store(s.page)
	}
}

func (s *shard) addDropped(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 {
		s.head.dropped += n
		s.head.store(s.page)
	}
}

// payloadSum reads the key's bytes in place: crc32 neither keeps nor changes
// them, and a copy would be an allocation a record.
func payloadSum(key string, value []byte) uint32 {
	sum := crc32.Checksum(unsafe.Slice(unsafe.StringData(key), len(key)), castagnoli)
	return crc32.Update(sum, castagnoli, value)
}
