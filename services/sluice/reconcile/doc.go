// Package reconcile holds the places where a quota's use is written against
// each other, counter by counter: Redis, which decides; the keeper's
// checkpoints; the ledger of what was granted and forfeited; and the usage
// events in the search store.
//
// # Model
//
// The four should say the same, a little later. So a counter on which they
// differ is looked at again, until they agree or the patience is over: what is
// only under way (an event being carried, the next checkpoint) is no
// difference. What then remains is reported with its numbers and the likely
// cause.
//
// # What is compared
//
//   - Redis with the checkpoint, while the period's keys live (72 h after its
//     end, schemas/redis/KEYS.md).
//   - The events' sum with consumed − refunded, where the search store keeps the
//     whole period; a counter that is older than what is kept is not.
//   - Of a wallet: granted and forfeited with the sums of its ledger, and
//     forfeited with Redis.
//
// It only reads. Counters are held in memory, some 300 bytes each.
//
// `sluice reconcile` runs it.
package reconcile
