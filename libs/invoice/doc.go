// Package invoice works out what a customer owes for a period: from the plans
// it held, what it used and what it bought in advance.
//
// It is pure: it reads no clock and no store, and equal input gives an equal
// invoice. services/billing reads what goes in, and keeps what comes out.
//
// # Model
//
// A period has one fee a plan held in it, and for each priced metric the lines
// of its price: units included, then one line a tier that units fall in. What
// renews is invoiced by use (consumed − refunded of its period); what is
// prepaid by what was topped up in the period, its use costs nothing more.
//
// Where the plan changed within a period, its use is priced by the version that
// held last; fees are shared by days where that version prorates.
//
// # Invariants
//
//   - Each line is rounded by itself, half up, to whole minor units of the
//     currency, and the total is the sum of the lines: it adds up for whoever
//     checks it by hand.
//   - No floats. Prices are billionths of the currency's unit, products are
//     taken in 128 bits, and what does not fit 2^53 minor units is an error.
//   - A final invoice never changes. What is known of its period later is a
//     correction line elsewhere: the same price for the new use, less what was
//     invoiced.
package invoice
