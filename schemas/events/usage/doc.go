// Package usage is the contract of topic usage.v1: one event a decision.
//
// Gateways write each event into their spool before the answer is sent; the
// indexer makes documents of them, the keeper folds the charges' totals. Both
// may see an event more than once, and in another order than it was made: ids
// are unique, and totals only ever grow, so neither does harm.
package usage
