// Package usagestore is the seam between the rooms and the place where usage
// events are kept for search: Elasticsearch or OpenSearch (package elastic),
// or Postgres (package pgstore) where there is none.
//
// # Model
//
// An event is a document, identified by tenant and event id. Put is
// idempotent by that pair, so a stream that is read again adds nothing. Each
// event of a Put has its own result: stored, refused for good (Permanent), or
// to be tried again.
//
// # Invariants, held by package storetest against every implementation
//
//   - one bad event never keeps others of its batch out;
//   - times are kept in milliseconds, UTC;
//   - Search gives newest first, and cursors neither skip nor repeat an event
//     while older ones are added;
//   - a sum joins each amount with its own counter, also where an event has
//     several, and leaves no event of its span out;
//   - Prune takes whole days of UTC.
//
// The indexer puts, the control plane searches and sums.
package usagestore
