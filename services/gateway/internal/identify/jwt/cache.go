package jwt

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"time"
)

// cache remembers verified tokens by their SHA-256. It is a table with one
// place a hash: a newcomer takes the place of whoever is there, so it is
// bounded, needs no lock and no clean-up. Only verified tokens enter, so
// forged ones cannot push anybody out. A nil cache remembers nothing.
type cache struct {
	places []atomic.Pointer[cached]
	mask   uint64
}

// cached is one verified token; never changed after it was made.
type cached struct {
	hash     [sha256.Size]byte
	source   *source
	keys     *keySet // the set that verified it
	lifetime lifetime
	identity Identity
}

// newCache makes a cache of at least size places; none below 1.
func newCache(size int) *cache {
	if size < 1 {
		return nil
	}
	places := uint64(1) << bits.Len64(uint64(size)-1)
	return &cache{places: make([]atomic.Pointer[cached], places), mask: places - 1}
}

func (c *cache) place(hash *[sha256.Size]byte) *atomic.Pointer[cached] {
	return &c.places[binary.LittleEndian.Uint64(hash[:8])&c.mask]
}

// find returns what is remembered of a token, if verifying it anew would say
// the same: its key set is still in force and it is neither early nor late.
func (c *cache) find(hash *[sha256.Size]byte, now time.Time) *cached {
	e := c.place(hash).Load()
	if e == nil || e.hash != *hash || e.source.keys.Load() != e.keys || e.lifetime.check(now) != nil {
		return nil
	}
	return e
}

func (c *cache) add(e *cached) { c.place(&e.hash).Store(e) }
