// Package indexer is the room that makes usage events searchable: it carries
// topic usage.v1 into the usage store.
//
// # Model
//
// A member of a consumer group takes batches of records. Each is decoded,
// judged by its time, and put into the store; what failed for now is put
// again, alone, with full-jitter backoff. A record that can never be a
// document becomes a dead letter with its reason. Offsets are committed when
// each record of the batch is one or the other.
//
// # Invariants
//
//   - Documents and dead letters together are the events: none is skipped, and
//     none holds up the others for good.
//   - A replay adds no document, as the store tells events by tenant and id. It
//     may repeat a dead letter; letters of one record have the same event id,
//     partition and offset.
//   - A dead letter is acknowledged by all replicas before its record's offset
//     is committed.
//   - An event older than the days that are kept, or from the future, cannot
//     create a day of its own: it is a dead letter.
//
// Gateways feed it through usage.v1. It feeds the usage store (package
// libs/usagestore), which the control plane searches, and topic
// usage-dead-letters.v1 for operators.
package indexer
