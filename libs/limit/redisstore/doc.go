// Package redisstore is the limit.Store on Redis: the decisions that wait while
// a call is under way travel together in the next one.
//
// # Model
//
// The script schemas/redis/decide.lua reads all counters of a call, judges its
// decisions one upon the other by Redis TIME, and writes what changed. This
// package chooses keys and quota periods, hands in numbers that were divided
// exactly beforehand, and derives remaining, reset and retry-after from the
// state the script returns.
//
// A decision is laid out as parts, one a slot (one Redis is one slot); a part
// as groups of counters, each all or nothing: the enforced ones, and each one
// judged apart (shadow, forced). Parts are queued for a server's lanes; each
// lane is a call under way. A call takes what waits, up to 48 counters, owner by
// owner in turn; none waits for it to fill. Each server has a breaker of its
// own. Goroutines: a lane runs while there is work, a probe while a breaker is
// open; Close waits for both.
//
// # Invariants
//
//   - A call is sent again only where that cannot charge twice: its answer proves
//     that nothing ran (NOSCRIPT, MOVED, ASK, TRYAGAIN, LOADING, READONLY,
//     CLUSTERDOWN, MASTERDOWN, and once the script's own WRONG_PERIOD and LATE), or
//     its answer is lost and it has an idempotency record (once).
//   - A server that goes on refusing everybody (READONLY, LOADING, CLUSTERDOWN,
//     MASTERDOWN) past a budget is asked by one decision in a while; the others
//     are told what it said.
//   - A decision ends after a budget (Options.Budget) of silence in which this
//     process ran, see waiting. That ends the wait, not the connection: the
//     call goes on, and what it charged for a decision that left is given back.
//   - A call charges nothing past its deadline by Redis's clock, which is
//     guessed from answers; our own clock does not matter.
//   - Counters of several slots are charged in each, and given back where
//     another denied: a twin may be denied meanwhile, nobody passes over a limit.
//   - What is to be given back and is not known to have been is handed to
//     Options.Owe, whose journal gives it back later, once.
//   - No quota is charged, given back or looked at where it is not known to be
//     whole: each call names the epoch that this store has reported its totals to,
//     on a connection to the process that the epoch is of (bind). The script answers
//     RESTORE else (limit.ErrRestoring); Run reports, and a keeper seals (package
//     restore, docs/adr/0015-restore-epoch.md).
//   - The highest totals seen of a quota are remembered and go with each call, so
//     that a counter deleted alone comes back.
//   - A call whose Redis is lost before it answered is counted (Stats.Unknown): a
//     counter may be too high by it, never too low.
//   - A decision with a note writes it in the step of its charge. What is charged
//     without the caller hearing of it is the caller's to take back then, which
//     gives back what was charged, once, and bars what was not; the store does not
//     do so by itself.
//   - A settlement is applied once for each sequence number of its id, an advance
//     by whoever finds its steps' numbers as they were.
//
// libs/rule makes the counters, services/gateway owns the client and the store;
// libs/breaker says when calls are not tried.
package redisstore
