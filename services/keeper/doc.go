// Package keeper is the room that settles: it folds the quota totals that
// usage events carry and keeps them in Postgres.
//
// # Model
//
// Every charge of a usage event carries its counter's totals right after the
// charge, from the same atomic step in Redis. The keeper takes the maximum of
// each number per counter, never a sum and never a read of Redis, so
// duplicates, drops, reordering and moves of partitions do no harm. Every
// checkpointEvery it raises the rows of the counters that were touched
// (GREATEST), and only then commits the offsets it had read before.
//
// A restorer (internal/restore) watches the epoch beside the counters in Redis.
// Where it is not that of this process and its data, the restorer brings the quotas
// up to the maxima that checkpoints, usage.v1 and the gateways know of, and seals a
// new epoch (docs/adr/0015-restore-epoch.md).
//
// A threshold that a charge shows to be reached is announced at once, as a row
// and an outbox row in one transaction (internal/threshold,
// docs/adr/0016-thresholds.md).
//
// A forfeiter ends the grants of wallets that have expired (libs/wallet,
// docs/walks/life-of-a-unit.md).
//
// # Invariants
//
//   - A row of checkpoints only ever grows; its limit is that of the newest
//     charge.
//   - Offsets are committed after what was read up to them is in Postgres: a
//     kill anywhere repeats work and changes no number.
//   - A threshold is announced once for each counter (with its period) and
//     limit, in ascending order. Offsets wait for it too.
//   - A grant is forfeited once, by the use of the very instant; the ledger's
//     sum is never above what Redis has, unless Redis lost it.
//   - Rows are written in the order of their keys, at most 500 a transaction:
//     two keepers cannot deadlock, and a checkpoint does not delay the WAL
//     that rules travel by.
//   - A restore never lowers a number, and its last step succeeds only on the
//     process, and the data, that it was begun for.
//   - Memory holds what was touched since the last checkpoint, and no more
//     than maxCounters of it: then reading pauses and the lag grows.
//
// Gateways feed it through topic usage.v1 and, during a restore, through Redis;
// invoices will read what it keeps, quota-events.v1 carries what it finds.
package keeper
