// Package restore is the keeper's side of a restore: it sees where quotas are not
// known to be whole, raises them to what is known of them, and says then that they
// are whole.
//
// # Steps
//
//  1. Look finds a process without an epoch of its own (emptied, restarted, failed
//     over, promoted, or with a slot that came from elsewhere). Begin writes a new
//     epoch with a leading ?: from now on no quota is charged there.
//  2. Every gateway sees the new epoch, lets its calls under way end, raises the
//     quotas to the totals it remembers, and reports to the epoch (Gateways).
//  3. Raise brings the quotas up to checkpoints and usage.v1.
//  4. Seal removes the ?, if the process still is the one the restore was begun for.
//
// # Invariants
//
//   - Each step may be repeated, by any number of keepers at once.
//   - What is raised is the highest number seen. Totals only grow, so six restores
//     give what one does.
//
// Source: docs/adr/0015-restore-epoch.md.
package restore
