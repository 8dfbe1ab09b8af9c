// Package stream is Sluice's way of using Kafka.
//
// # Model
//
// A compacted topic is a table: one partition, the newest record a key wins.
// Table reads it whole into memory and keeps it current; Follower is the
// reading beneath it, Ledger the arithmetic that says which record wins and
// what a faithful copy amounts to. A topic that is not compacted is a flow:
// Group shares its partitions among the members of a consumer group; those of a
// member that was killed are another's, or its next start's, in some ten seconds.
//
// # Invariants of tables
//
//   - A record whose (generation, version) is older than what is held for its
//     key is ignored, also where what is held is a deletion.
//   - A table is ready only once its count and digest equalled a mirror
//     record, at or behind the end that the topic had when reading began: an
//     empty topic without a mirror record is not an empty table.
//   - One record that cannot be decoded costs only its own key, which keeps
//     its last good value, or a stand-in (TableOptions.Salvage) where it never
//     had one.
//   - What was once ready goes on being served, whatever happens to Kafka;
//     Table.Age says how old it may be.
//   - No consumer group is used, so none is left behind.
//
// # When a copy cannot be continued
//
// A topic that was deleted and made again has another id, which the client
// library does not adopt; after a loss of records the next offset may not
// exist. Then a second copy is built from the first record with a client of
// its own, and swapped in when a mirror record proves it whole. Until then
// the old copy is served and still takes whatever is newer than it holds.
//
// Fed by the relay (compacted topics) and the gateways (usage.v1); feeds the
// gateways, keeper and indexer.
package stream
