// Package threshold announces that a quota's use has reached a threshold.
//
// # Model
//
// A charge of a usage event carries its counter's totals, the limit it was
// judged by and the thresholds of its rule. Where use is at or above a
// threshold, the package inserts the row (counter, threshold, limit), and the
// outbox row of the announcement, in one transaction. The row's primary key
// makes the announcement unique: nothing else decides. A counter's identity
// names its period, so a new period announces anew, and so does another limit.
//
// # Invariants
//
//   - Each (counter, threshold, limit) is announced once, whatever the order of
//     the events, however often they are read, and by however many keepers.
//   - The thresholds that one charge shows are announced in ascending order.
//   - The id of an announcement follows from those three, so that consumers can
//     recognise one that Kafka delivers again.
//   - Rows are inserted in one order everywhere: two keepers cannot deadlock.
//   - Memory only saves questions: a row that is remembered as stored is never
//     removed from Postgres.
//
// The keeper passes charges to Observe and calls Flush before it commits
// offsets; what waits in memory at a kill is read again. The relay carries the
// outbox to quota-events.v1 (schemas/events/quotaevents).
package threshold
