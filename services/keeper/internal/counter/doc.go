// Package counter reads what a quota counter's identity says: whose use it
// counts, of which metric, in which period.
//
// # Model
//
// An identity (schemas/redis/KEYS.md) is
//
//	{t:<tenant>}:<kind>:<name>:<metric>:quota:<period>:<period id>
//
// with percent-escaped parts. The tag of a counter that belongs to no tenant
// begins otherwise, and a wallet's counter has no period.
//
// # Invariants
//
//   - No function fails: of an identity that no gateway makes the answer is
//     empty, or the identity itself.
//   - Every answer can be stored in Postgres as text.
//
// The keeper and its packages use it for events, which carry identities.
package counter
