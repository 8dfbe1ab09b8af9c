// Package share judges by a gateway's own share of each limit while the counter
// store is away (onStoreLoss local).
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
//   - A process that has not reached the store gives out nothing: the process
//     before it may have spent its share.
//   - A share outlives the outage: a store that comes and goes gives nobody a
//     second one within the same window, and what the store says meanwhile can
//     only make it smaller. A limit that is changed meanwhile changes it by the
//     gateway's share of the difference.
//   - Of a wallet nothing is given out unless the store has said what was left.
//   - All counters of a decision are charged, or none; what is given back can be
//     had again.
//   - Memory is bounded; a counter that is forgotten is one never seen.
//
// internal/membership says how many gateways live. The gateway observes, decides
// here while the store is away, and has the journal charge it afterwards
// (docs/adr/0012-local-shares.md).
package share
