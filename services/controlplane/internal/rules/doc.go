// Package rules writes and reads what limits requests and names who makes them:
// rules, overrides, services (the catalog), API keys, and purges of stored answers.
//
// # Invariants
//
//   - An API key is never stored; its hash is neither shown nor audited.
//   - A service stays while a rule, a plan or an active subscription names it.
package rules
