// Package billing works out invoices: one a customer, currency and period.
//
// # Model
//
// A pass looks at each customer in a transaction of its own. It lists the
// periods of the customer's subscriptions that are not on a final invoice yet,
// reads what was used (the keeper's checkpoints) and topped up (the ledger),
// has libs/invoice draw the invoice, and writes it down: as a draft until the
// days of grace after the period's end have passed, as final from then on.
//
// # Invariants
//
//   - One invoice: the table's unique constraint decides, and passes of one
//     customer wait for each other by the customer's row. A pass that dies
//     anywhere has written all of a customer or nothing; the next one does it
//     again.
//   - A final invoice is never written again, and has a number without gaps.
//   - Use that becomes known after that is a correction on the customer's next
//     invoice: priced as the final one was, less what was invoiced for it.
//   - Periods are half open, and the next one begins where the last one that is
//     final ended.
//   - One customer whose invoice cannot be worked out holds up no other.
//
// Fed by the tables of controlplane and keeper; feeds the tables of billing,
// which the control plane's REST reads.
package billing
