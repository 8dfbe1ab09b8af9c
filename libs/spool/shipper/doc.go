// Package shipper carries a spool's records to a Kafka topic.
//
// # Model
//
// Batches of records are read from the spool and produced (acks of all
// replicas, idempotent producer); a bounded number of them is on its way at
// once. A batch is acknowledged in the spool when each of its records is in
// Kafka or refused for good, and batches are acknowledged in the order they
// were read. Kafka away and Kafka there are one path: the spool fills, or it
// does not.
//
// # Invariants
//
//   - What is not acknowledged is read again after a restart: at least once.
//   - A record that Kafka refuses for good, alone, is logged, counted and
//     skipped. Everything else is tried again for ever.
//   - No part of this blocks Append.
//
// The gateway runs one shipper for its usage events; the indexer and the
// keeper consume them.
package shipper
