// Package local judges by a gateway's own share of each limit while the store
// of the counters is away (onStoreLoss local).
//
// # Model
//
// A share is floor(min(limit, last known remaining) ÷ live gateways), the
// remainder of the division going to the lowest ranks, so that the shares of
// all gateways never sum up to more than was left. What remained is remembered
// from the store's answers (Observe). Windows and quotas hold their share as a
// number of units until the window or period ends; sliding windows likewise for
// one window from the first use; gcra and tokenBucket hold a share of the burst
// and refill at the limit's rate divided by the live gateways.
//
// # Invariants
//
//   - A share outlives the outage: a store that comes and goes gives nobody a
//     second one within the same window, and what the store says meanwhile can
//     only make it smaller.
//   - Of what never renews (prepaid quotas) nothing is given out unless the
//     store has said what was left.
//   - All counters of a decision are charged, or none.
//   - Memory is bounded; a counter that is forgotten is one never seen.
//
// libs/fleet says how many live. services/gateway observes, decides here while
// the store is away, and has libs/settle charge it afterwards.
package local
