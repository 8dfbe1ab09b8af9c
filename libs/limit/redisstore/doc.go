// Package redisstore is the limit.Store on Redis: one EVALSHA a decision.
//
// # Model
//
// The script schemas/redis/decide.lua reads all counters, judges them by Redis
// TIME and charges all of them or none; this package chooses keys and quota
// periods, hands in numbers that were divided exactly beforehand, and derives
// remaining, reset and retry-after from the state the script returns.
//
// # Invariants
//
//   - A charge is never sent twice. The command opts out of go-redis's own
//     retries; only answers that prove nothing ran are sent again: NOSCRIPT
//     with the script's text, WRONG_PERIOD once with the period Redis is in.
//   - A call ends within Options.Timeout, also when Redis is silent, and is not
//     cut short by its caller's cancellation: an answer on its way is awaited.
//   - Errors and silence open a breaker; then calls fail at once, and a probe
//     in the background closes it again. No request pays for probing.
//   - The gateway's clock does not matter: the offset to Redis is learned from
//     every answer, and is used only to choose the first period to try.
//
// libs/rule makes the counters, services/gateway owns the client and the store.
package redisstore
