// Package restore watches the epochs of the counters' Redis, and restores quotas
// where they may have lost units.
//
// # Model
//
// Every 250 ms the restorer looks at each process (libs/limit/redisstore/restore).
// Where one is not whole it begins a restore, waits for the gateways that may know
// of charges no event tells of yet, raises the quotas to what checkpoints and
// usage.v1 know, and seals the epoch. Until then decisions with quotas follow the
// rules' onStoreLoss.
//
// # Invariants
//
//   - Each step raises numbers, or is good for one restore only: any number of
//     keepers may run it at once, and each may be killed at any step.
//   - A gateway that lived before the loss is waited for, until it has reported or
//     was not there for 15 s.
//   - Offsets of usage.v1 are asked for before the checkpoints are read: what was
//     committed is in the rows.
package restore
