// Package journal charges, corrects and gives back afterwards what could not be
// while the store of the counters was away, or while the process that owed it died.
//
// # Model
//
// Each request that passed uncounted (onStoreLoss open or local) leaves one record
// in a journal on disk, a small spool: its counters, costs and time; one whose cost
// could not be corrected, or whose charge could not be given back, leaves the
// difference. Run reads the journal in order, sums up a stretch of it by counter,
// and has the store charge the sums unconditionally under a sequence number that
// the store accepts once (limit.Once). Then the stretch is acknowledged.
//
// A request whose charge may be given back (a rule's refundOn) is in the journal
// while it is in flight: a begun record before it is forwarded, an ended record
// when its end is known, which gives the charge back where the request failed. A
// begun record without an end belonged to a process that was killed: the next start
// gives it back.
//
// # Invariants
//
//   - Once: the end of a stretch is on disk before it is charged, so that a
//     repetition, by this process or the next, is the same stretch under the same
//     numbers. Its records, and then the mark behind it, are on disk before the
//     state says so.
//   - A counter of a stretch is never left out of a repetition: which key guards
//     the numbers depends on them.
//   - Where Redis was lost after a stretch was sent and before it was answered, the
//     repetition charges what it charges, and gives nothing back: the store may have
//     done it before. A counter is too high by it, and metric
//     sluice_settle_unknown_units_total counts it.
//   - A request's ended record is behind all copies of its begun record; the mark
//     is never behind the first request in flight.
//   - A crash of the machine may lose ended records: what was in flight then is not
//     given back, and counted (sluice_settle_inflight_unknown_total).
//   - Quotas are charged in full, in the period the units were used in. Rates are
//     charged, and given back, what still counts: nothing of a window that has ended,
//     of a bucket what has not been refilled since; and charged at most one capacity,
//     so that an outage is not followed by another one made of denials.
//   - A journal that is full drops its oldest records and counts them.
//
// Package charge decides and appends; libs/limit/redisstore charges.
package journal
