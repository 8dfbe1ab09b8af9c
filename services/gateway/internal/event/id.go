package event

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// NewID returns a UUID version 7 (RFC 9562, section 5.7) with the
// milliseconds of t and 74 random bits. The random bits come from the
// runtime's ChaCha8 generator, which needs no lock shared by all requests.
func NewID(t time.Time) string {
	var dst [36]byte
	var u [16]byte
	binary.BigEndian.PutUint64(u[:8], uint64(t.UnixMilli())<<16|rand.Uint64()&0xffff) //nolint:gosec // unique, not secret
	binary.BigEndian.PutUint64(u[8:], rand.Uint64())                                  //nolint:gosec // unique, not secret
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	hex.Encode(dst[0:8], u[0:4])
	hex.Encode(dst[9:13], u[4:6])
	hex.Encode(dst[14:18], u[6:8])
	hex.Encode(dst[19:23], u[8:10])
	hex.Encode(dst[24:36], u[10:16])
	dst[8], dst[13], dst[18], dst[23] = '-', '-', '-', '-'
	return string(dst[:])
}
