// Package limit decides whether a request's counters let it pass.
//
// # Model
//
// A Counter is where a winner of the rule index counts: an identity (Key), an
// algorithm and the numbers it is judged by. A Store takes all counters of one
// request and answers in one atomic step: every counter lets the request pass
// and every one is charged, or nothing is charged at all. The Decision carries
// the state of each counter from that same step.
//
// # Invariants
//
//   - Integers only, exact to 2^53. gcra's emission interval window ÷ limit is
//     kept as whole microseconds and a remainder, so nothing drifts.
//   - Time is the store's. A clock that steps back refills nothing.
//   - A rested counter lets exactly its capacity pass at one instant.
//   - Cost 0 looks and takes nothing; cost above capacity is denied for ever
//     (Never); limit 0 denies everything; unlimited counts and never denies.
//   - Changing limit or burst keeps a counter's state: they are not identity.
//
// libs/rule makes Counters, services/gateway asks a Store. The store on Redis
// is libs/limit/redisstore; Model here is the reference it is compared with in
// random histories. This package knows nothing of Redis.
package limit
