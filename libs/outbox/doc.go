// Package outbox holds both ends of the transactional outbox.
//
// # Model
//
// Whoever changes a fact that another process must hear calls Append in the
// transaction that changes it: the fact and its message are committed
// together or not at all. The Reader receives the inserted rows from the WAL
// (logical replication, pgoutput) a fraction of a millisecond after the
// commit, whole transactions in commit order, never one that was rolled back.
//
// # Invariants
//
//   - The write-ahead log is confirmed (Reader.Confirm) only up to what the
//     caller says has been acknowledged downstream; with nothing in flight the
//     server's own position is confirmed too, so that an idle slot holds no WAL.
//   - One slot has one reader: Postgres refuses a second, which then stands by
//     (ErrSlotActive).
//   - A reader knows for how long it may still believe that it is the one
//     (Reader.Lease); a process that was stopped and woken finds it expired.
//
// Fed by the rooms that own facts (controlplane, later keeper); feeds the relay.
package outbox
