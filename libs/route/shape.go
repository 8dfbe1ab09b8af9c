package route

import (
	"hash/maphash"
	"strings"
)

// MaxHashed is how many segments of a path are hashed. Longer patterns are told
// apart by their first ones, and by Matches.
const MaxHashed = 16

// Shape says where a pattern's literals stand: /a/{x}/b and /c/{y}/d have one.
// It is comparable. An index that keeps patterns by Shape and LiteralHash finds
// those that match a path with one look-up a Shape, however many there are.
type Shape struct {
	segments int16
	rest     bool
	literals uint16 // bit i: segment i is a literal
}

// Shape returns the pattern's.
func (p Pattern) Shape() Shape {
	s := Shape{segments: int16(min(len(p.segs), 1<<15-1))}
	for i, seg := range p.segs {
		switch {
		case seg.kind == rest:
			s.rest = true
		case seg.kind == literal && i < MaxHashed:
			s.literals |= 1 << i
		}
	}
	return s
}

// LiteralHash is what Shape.Hash returns for every path that p matches.
func (p Pattern) LiteralHash() uint64 {
	s := p.Shape()
	h := s.start()
	for i, seg := range p.segs {
		if i < MaxHashed && seg.kind == literal {
			h = combine(h, hashText(seg.text))
		}
	}
	return h
}

// Hash returns the LiteralHash of the patterns of this shape that may match the
// path; ok is false where none can. Matches has the last word: hashes collide.
func (s Shape) Hash(p *PathHash) (h uint64, ok bool) {
	if p.segments < int(s.segments) || p.segments > int(s.segments) && !s.rest {
		return 0, false
	}
	h = s.start()
	for i := 0; i < MaxHashed && s.literals>>i != 0; i++ {
		if s.literals>>i&1 != 0 {
			h = combine(h, p.hashes[i])
		}
	}
	return h, true
}

func (s Shape) start() uint64 {
	h := uint64(s.segments)<<17 | uint64(s.literals)<<1
	if s.rest {
		h |= 1
	}
	return combine(1, h)
}

// PathHash holds the hashes of a path's segments.
type PathHash struct {
	segments int
	hashes   [MaxHashed]uint64
}

// HashPath hashes a path that CleanPath returned. It does not allocate.
func HashPath(cleanPath string, into *PathHash) {
	into.segments = 0
	for left := cleanPath; left != "" && left[0] == '/'; into.segments++ {
		left = left[1:]
		end := strings.IndexByte(left, '/')
		if end < 0 {
			end = len(left)
		}
		if into.segments < MaxHashed {
			into.hashes[into.segments] = hashEscaped(left[:end])
		}
		left = left[end:]
	}
}

// seed is this process's: hashes of literals mean nothing outside of it.
var seed = maphash.MakeSeed()

// hashedBytes is how much of a segment is hashed; a path may hold any length.
const hashedBytes = 128

func hashText(s string) uint64 { return maphash.String(seed, s[:min(len(s), hashedBytes)]) }

// hashEscaped is hashText of what the escaped segment says.
func hashEscaped(s string) uint64 {
	if strings.IndexByte(s, '%') < 0 {
		return hashText(s)
	}
	var text [hashedBytes]byte
	n := 0
	for i := 0; i < len(s) && n < hashedBytes; i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			c = byte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
		}
		text[n] = c
		n++
	}
	return maphash.Bytes(seed, text[:n])
}

func combine(h, next uint64) uint64 {
	h = (h ^ next) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}
