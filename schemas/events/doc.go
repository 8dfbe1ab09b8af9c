// Package events is the registry of everything that travels through Kafka.
//
// One folder a topic holds the Go type, its JSON Schema and an example that a
// test holds against both. topics.yaml beside this file says for each topic
// its key, partitions, retention, who produces it, who consumes it and, for a
// compacted topic, the Postgres view it mirrors. The relay creates topics
// from it and reconciles them against their views, so it needs to know no
// room.
//
// # Compatibility
//
// Events only gain fields. Readers ignore fields they do not know, and pass
// unknown values of open vocabularies (decision, algo, status) through.
//
// # Record headers of compacted topics
//
//	generation    decimal; one life of the database. It grows when the
//	              database's system id or timeline change.
//	version       decimal; from one ever-growing sequence of that database.
//	committed-at  decimal; commit time in Postgres, µs since the Unix epoch.
//	relayed-at    decimal; when the relay handed the record to its producer,
//	              µs since the Unix epoch.
//
// A consumer ignores a record whose (generation, version) is older than what
// it holds for the key, tombstones included; an equal one is taken again.
//
// # Mirror record
//
// The key MirrorKey carries a Mirror as its value and no version header: the
// count and digest of all live records at that point of the topic. It is
// written by the relay after every reconciliation and repeated every second.
package events
