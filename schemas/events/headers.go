package events

// Names of the headers on records of compacted topics; see the package
// comment for their values.
const (
	HeaderGeneration  = "generation"
	HeaderVersion     = "version"
	HeaderCommittedAt = "committed-at"
	HeaderRelayedAt   = "relayed-at"
)

// MirrorKey is the record key of a mirror record. It cannot collide with an
// identifier of ours, since none may start with a control character.
const MirrorKey = "\x00mirror"

// Mirror is the value (JSON) of a mirror record: what a faithful copy of the
// topic holds at that point.
type Mirror struct {
	// Generation is the life of the database that the topic mirrors.
	Generation int64 `json:"generation"`
	// Origin names that database: system id, timeline and database name.
	Origin string `json:"origin"`
	// Count is the number of live keys (tombstones and mirror records do not count).
	Count int64 `json:"count"`
	// Digest is the sum modulo 2^64, as 16 hexadecimal digits, of XXH64 over each live
	// record (length-prefixed key, version, value; see libs/stream.Digest).
	Digest string `json:"digest"`
	// At is when the record was made, µs since the Unix epoch.
	At int64 `json:"at"`
	// Relay is the instance that made it.
	Relay string `json:"relay"`
}
