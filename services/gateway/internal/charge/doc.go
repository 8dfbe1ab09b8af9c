// Package charge decides whether a request passes, and charges it.
//
// # Model
//
// A Charger begins the charges of each request: it asks all counters of the
// matched rules in one call of the store, and turns their answers into a
// verdict. Where the store cannot be asked, the strictest onStoreLoss of the rules
// holds: closed denies, local judges by this gateway's share (internal/share), open
// lets pass. What passes uncounted goes to the journal before it is forwarded, and
// is charged when the store is back. Finish ends the charges when the call's end
// is known: it gives back what refundOn of a rule names, and corrects the rest to
// the cost that the service states. Events lists what was charged.
//
// # Invariants
//
//   - All counters of a request are charged, or none: what a share was charged for
//     a request that another rule denies is given back.
//   - What passes uncounted is in the journal before the service sees it. Of rules
//     with refundOn it is journaled once the call has ended well.
//   - A charge is given back at most once. What is given back is not corrected.
//   - Shadow rules are charged apart and deny nothing.
//   - A request's Charges belong to one goroutine.
//
// The gateway calls it between matching and the answer; package journal is on disk.
package charge
