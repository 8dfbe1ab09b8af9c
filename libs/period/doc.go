// Package period computes the calendar periods that renewing quotas count in.
//
// A Calendar maps an instant to the one period that holds it, as half-open
// bounds [Start, End) with an id that is the same on every machine. Periods of
// a calendar tile time: the End of one is the Start of the next.
//
// Now there is one calendar, the month in UTC that begins on its first day;
// the type is a comparable value so that zones, anchor days and other units
// can be added without touching its users. libs/rule makes calendars from
// rules; libs/limit asks them which counter a charge goes to.
package period
