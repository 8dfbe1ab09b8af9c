// Package epoch says in which Redis process, and since which restore, the quotas
// are whole.
//
// # Model
//
// Beside the counters lies a key, the epoch: RUN_ID:REPLID:TOKEN. RUN_ID is the
// process, REPLID the replication id of its data (a promotion changes it), TOKEN
// the restore after which the quotas were whole. A leading ? says that the restore
// is under way. Of one Redis there is one epoch; of a Cluster one a slot, since a
// script reaches keys of its slot only, and the lowest slot of a master speaks for
// all of its slots.
//
// # Invariants
//
//   - An epoch whose RUN_ID or REPLID is not the process's own says nothing: the
//     quotas may have lost units.
//   - Raise never lowers a number, so it may be run by anybody, in any order, any
//     number of times.
//
// Package redisstore charges under an epoch and reports what it knows; package
// restore is the keeper's side.
package epoch
