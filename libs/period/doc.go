// Package period computes the calendar periods that renewing quotas count in:
// hours, days, weeks, months and years in an IANA zone, or one that never ends.
//
// A Calendar maps an instant to the one period that holds it, as half-open
// [Bounds] with an id. It is a comparable value of one word.
//
// # Invariants
//
//   - Periods of a calendar tile time: the End of one is the Start of the next.
//     So a day of a clock change is 23 or 25 hours long, and a day that a zone
//     skipped has no period.
//   - A period begins at the first instant at which its zone's clock reads its
//     start or later. A midnight that does not exist is thus the instant after
//     the gap; of a midnight that comes twice the first one counts.
//   - An id is unique within its calendar, sorts as its period does, and never
//     changes for the same period; [Bounds.Name] is unique among all calendars.
//     Ids name local dates, so a correction of the zone database moves bounds
//     but keeps counters. Hours are named in UTC: a local hour can come twice.
//   - A changed calendar ([Calendar.Then]) finishes the running period by the
//     old calendar, and goes on in the middle of the new one's, under that
//     period's own name. No name is used by both, however often a calendar is
//     changed, there and back; and once the change has come to pass it makes no
//     difference to any name whether it is still remembered.
//
// # Zones
//
// The zone database is the system's (or that of $ZONEINFO) where there is one,
// else a copy inside the binary, about 0.4 MB of it. Machines that count on the
// same Redis should have the same release of it: where two disagree on the
// length of a period, each refuses what the other calls the next one.
//
// libs/rule makes calendars from rules; libs/limit asks them which counter a
// charge goes to.
package period
