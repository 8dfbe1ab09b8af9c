package spool

import (
	"encoding/binary"
	"hash/crc32"
)

// A frame is a header of 32 bytes, the key and the value, padded to 32 bytes,
// so that a header never wraps round the end of a ring.
//
//	0  crc    u32  CRC-32C of key, value, then bytes 4..32 of the header
//	4  length u32  record: key + value; skip: bytes of the whole frame
//	8  pos    u64  logical position in the ring; tells this lap from the last
//	16 seq    u64  number of the record in its ring, from 0
//	24 keyLen u32
//	28 kind   u32
const (
	frameHeader = 32
	frameAlign  = 32
	// frameMaxKey keeps a nonsense length from being read as a key.
	frameMaxKey = 1 << 20
)

const (
	kindRecord = 1
	// kindSkip covers the rest of a lap that is too short for the next record,
	// or a damaged stretch.
	kindSkip = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type frame struct {
	length, keyLen, kind uint32
	pos, seq             uint64
}

// size is how far the next frame is, in bytes.
func (f frame) size() uint64 {
	if f.kind == kindSkip {
		return uint64(f.length)
	}
	return recordSize(int(f.length))
}

func recordSize(payload int) uint64 {
	return uint64(frameHeader+payload+frameAlign-1) &^ (frameAlign - 1)
}

func decodeFrame(b []byte) frame {
	return frame{
		length: binary.LittleEndian.Uint32(b[4:]),
		pos:    binary.LittleEndian.Uint64(b[8:]),
		seq:    binary.LittleEndian.Uint64(b[16:]),
		keyLen: binary.LittleEndian.Uint32(b[24:]),
		kind:   binary.LittleEndian.Uint32(b[28:]),
	}
}

// encode writes the header; sum is the CRC of the payload so far.
func (f frame) encode(b []byte, sum uint32) {
	binary.LittleEndian.PutUint32(b[4:], f.length)
	binary.LittleEndian.PutUint64(b[8:], f.pos)
	binary.LittleEndian.PutUint64(b[16:], f.seq)
	binary.LittleEndian.PutUint32(b[24:], f.keyLen)
	binary.LittleEndian.PutUint32(b[28:], f.kind)
	binary.LittleEndian.PutUint32(b, crc32.Update(sum, castagnoli, b[4:frameHeader]))
}

// validFrame decodes the frame at logical position pos of a ring, and reports
// whether it is whole and of this lap.
func validFrame(ring []byte, pos uint64) (frame, bool) {
	at := pos % uint64(len(ring))
	b := ring[at:]
	f := decodeFrame(b)
	if f.pos != pos {
		return frame{}, false
	}
	var sum uint32
	switch f.kind {
	case kindRecord:
		if f.keyLen > f.length || f.keyLen > frameMaxKey || recordSize(int(f.length)) > uint64(len(b)) {
			return frame{}, false
		}
		sum = crc32.Checksum(b[frameHeader:frameHeader+int(f.length)], castagnoli)
	case kindSkip:
		if f.length < frameHeader || f.length%frameAlign != 0 || uint64(f.length) > uint64(len(ring)) {
			return frame{}, false
		}
	default:
		return frame{}, false
	}
	want := binary.LittleEndian.Uint32(b)
	return f, crc32.Update(sum, castagnoli, b[4:frameHeader]) == want
}
