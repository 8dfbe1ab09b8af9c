// Package breaker stops asking a server that does not answer.
//
// # Model
//
// A Breaker is closed while the server answers. Consecutive errors open it, and
// so does silence: a call that timed out when nothing was heard for a while.
// While it is open, Allow is false; once an interval one caller is told to
// probe, and only a probe that succeeds closes it again.
//
// # Invariants
//
//   - Only what says that the server cannot be reached is a failure; an error
//     the server answered is an answer.
//   - One time-out among answers (a stalled connection, a fork) opens nothing.
//   - At most one probe is under way.
//
// It starts no goroutine: whoever was told to probe does it. libs/limit's Redis
// store uses it. It does not yet know stalls of its own process from silence.
package breaker
