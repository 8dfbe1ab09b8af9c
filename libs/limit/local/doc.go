// Package local judges by a gateway's own share of each limit while the store
// of the counters is away (onStoreLoss local).
//
// # Model
//
// A share is floor(min(limit, last known remaining) ÷ live gateways), the
// remainder of the division going to the lowest ranks, so that the shares of
// gateways that saw the same remainder never sum up to more than was left. One
// that saw less of the traffic remembers more; the sum may then pass the limit,
// by less than (n-1)/n of it in one outage among n gateways. What remained is remembered
// from the store's answers (Observe). Windows and quotas hold their share as a
// number of units until the window or period ends; sliding windows likewise for
// one window from the first use; gcra and tokenBucket hold a share of the burst
// and refill at the limit's rate divided by the live gateways.
//
// # Invariants
//
//   - Where the store was never reached, nothing is given out of a window or period
//     that began before this process: one before it may have given that out. A
//     bucket then begins empty.
//   - A share outlives the outage: a store that comes and goes gives nobody a
//     second one within the same window, and what the store says meanwhile can
//     only make it smaller. A limit that is changed meanwhile changes it by the
//     gateway's share of the difference.
//   - Of what never renews (prepaid quotas) nothing is given out unless the
//     store has said what was left.
//   - All counters of a decision are charged, or none; what is given back can be
//     had again.
//   - Memory is bounded; a counter that is forgotten is one never seen.
//
// libs/fleet says how many live. services/gateway observes, decides here while
// the store is away, and has libs/settle charge it afterwards.
package local
