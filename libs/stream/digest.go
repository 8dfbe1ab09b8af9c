package stream

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Digest is one live record's part of a table's digest: XXH64 (seed 0) over
// the key's length (8 bytes, little endian), the key, the version (8 bytes,
// little endian) and the value. A table's digest is the sum modulo 2^64, so it
// needs no order and follows a change in constant time.
func Digest(key string, version int64, value []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], uint64(len(key)))
	_, _ = d.Write(word[:]) // Write of a hash never fails
	_, _ = d.WriteString(key)
	binary.LittleEndian.PutUint64(word[:], uint64(version))
	_, _ = d.Write(word[:])
	_, _ = d.Write(value)
	return d.Sum64()
}

// FormatDigest is the form of a table's digest in a mirror record.
func FormatDigest(sum uint64) string { return fmt.Sprintf("%016x", sum) }
