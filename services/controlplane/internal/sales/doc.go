// Package sales writes and reads what is sold, to whom: customers, plans,
// subscriptions, wallets and their top-ups, invoices, links to the portal.
//
// A subscription is a state, and libs/plan says which rules it stands for: each
// change of one writes what differs (subscription_changes.go). Plan migrations,
// ends and proration need no state of their own, and may stop and start anywhere.
//
// # Invariants
//
//   - Whoever changes what a customer has holds the lock of the customer's row
//     (subscription_tx.go).
//   - A top-up is granted once for each Idempotency-Key of a customer.
package sales
