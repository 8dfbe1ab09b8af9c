// Package store writes and reads the rows of the control plane's Postgres tables:
// a key, a version and a document each.
//
// # The walk of a write
//
// Apply opens a transaction, and ApplyIn does the write in it: lock the row, judge
// the precondition, draw the version, build the document, put it, append the outbox
// row that the relay will carry (outbox.Append), and insert the audit row.
//
// # Invariants
//
//   - Row, outbox row and audit row are committed together or not at all.
//   - What the outbox carries for a version is, byte for byte, what the views
//     rules_v1, overrides_v1, catalog_v1, keys_v1 and purges_v1 show for it.
//   - Versions come from one sequence and are drawn under the row's lock: a
//     key's versions commit in their order, also over deletion and re-creation.
//   - A rule or override that a subscription wrote is changed by that
//     subscription alone (owner.go).
package store
