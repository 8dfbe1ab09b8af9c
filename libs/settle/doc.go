// Package settle charges, corrects and gives back afterwards what could not be
// while the store of the counters was away.
//
// # Model
//
// Each request that passed uncounted (onStoreLoss open or local) leaves one
// record in a journal on disk, a small spool: its counters, costs and time; one
// whose cost could not be corrected, or whose charge could not be given back,
// leaves the difference. A Settler reads the journal in order, sums up a stretch
// of it by counter, and has the store charge the sums unconditionally under a
// sequence number that the store accepts once. Then the stretch is acknowledged.
//
// A decision whose charge may be given back (a rule's refundOn) holds a slot of a
// second file from before the store is asked until the end of its request is
// known. The slot names a note, a number that the store writes in the very step
// of the charge. Where the request failed, a record moves from the slot into the
// journal; where it did not, the slot is freed. What is still held when a process
// starts belonged to one that died: the store is asked to take back what its note
// says was charged, and charges it never again. So it is, too, where the answer
// of a decision was late or lost.
//
// # Invariants
//
//   - Once: the end of a stretch is written to disk before it is charged, so
//     that a repetition, by this process or the next, is the same stretch under
//     the same numbers; the store knows the last number of each journal. Its records,
//     and then the mark behind it, are on disk before the state says so: a crash of
//     the machine charges nothing twice either.
//   - What is written for that lies in a file of fixed size, all on disk since it
//     was made: a disk that is full takes it, and a torn write leaves what it was.
//   - A counter of a stretch is never left out of a repetition, whatever the
//     time: which key guards the numbers depends on them.
//   - Quotas are charged in full, in the period the units were used in. Rates
//     are charged, and given back, what still counts: nothing of a window that has
//     ended, of a bucket what has not been refilled since; and charged at most one
//     capacity, so that an outage is not followed by another one made of denials.
//   - Nothing is charged with a note before its slot is on disk, and a slot's note
//     is asked with a number that was never asked before. Whoever takes it back,
//     how often, gives back once what was charged and bars what was not. Where the
//     disk takes no slot, the charge has no note, and a kill loses its refund.
//   - What a slot holds stays whole until what comes in its place is.
//   - A hold moves once: its slot names the number of the record it becomes, and
//     the journal tells whether it has that record.
//   - A slot is not used again before its note has come to its end, or its
//     decision's answer is known.
//   - A journal that is full drops its oldest records and counts them.
//
// The gateway decides, appends and runs the Settler; libs/limit/redisstore charges.
package settle
