// Package reserve takes units of counters ahead for work whose cost is known only
// afterwards, and brings them to an end once: committed at the real cost,
// released, or expired.
//
// # Model
//
// A reservation is a record of what is charged (counters, costs, whose it is),
// and three numbers beside the tenant's counters: its state, the attempt that was
// charged, and when it ended. The numbers go on in the very step that charges
// the counters (redisstore.Advance), so that of all who try at once, repeats,
// other gateways and sweeps among them, one does, and the others find what it did.
//
//	state 0 ─charge─▶ 1 reserved ─┬─commit n─▶ 5 + n
//	  │                           ├─release──▶ 2
//	  └─release─▶ 4 void          └─sweep────▶ 3 expired
//
// Before the charge an attempt writes its record and a place in the index of what
// is to be looked at; its name is the time by the store's clock, which is also when its
// units count. At the due time whoever sweeps finds every attempt: the one that
// was charged and nobody brought to an end is given back, the others are
// forgotten.
//
// The record is written only where the tenant has a place for it: so many attempts
// may be open at once (Options.MaxOpen), from before their charge until they were
// brought to their end.
//
// Both are read for the list of what is open (Book.Open): the places of one tenant,
// or the index, each beside looks which hold that nothing of it was lost.
//
// Counters in other slots of a Cluster, and those of shadow rules, follow: each
// group of them has a number of its own, named by the attempt, that goes from 0
// to 1 with its charge and to 2 with its end. The tenant's slot decides: others
// are charged before it and given back where it denies; shadow rules come after
// it, and deny nothing.
//
// # Invariants
//
//   - Each step is applied in the store first, then told (Options.Tell, with what
//     identifies it the same whoever tells), and then taken out of the index. Who
//     dies in between leaves it there, and a repeat or the sweep does the rest.
//   - No step stays untold for long (10 s), though what it is of may be due in a day:
//     counters that are lost come back by totals, the step by its event.
//   - An attempt charges nothing once it is due, by the store's clock; whoever
//     finds it later may take for granted that no charge is to come.
//   - A corrected amount belongs to the period, and the window, of the attempt.
//   - Where the quotas are not known to be whole nothing is charged, ended, or said
//     not to be there: the numbers may be lost with them, and come back.
//   - Nothing is kept for ever: numbers and records go a day after the end, or 30
//     days after the due time.
//
// The gateway owns the Book and tells; schemas/redis/KEYS.md has the keys,
// docs/adr/0019-reservations.md the reasons.
package reserve
