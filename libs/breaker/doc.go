// Package breaker stops asking a server that does not answer, and knows when
// the one that does not is this process itself.
//
// # Model
//
// A Breaker is closed while the server answers. Connection errors in a row open
// it, and so does silence: 50 ms in which a call waited and nothing at all was
// answered. While it is open, Allow is false; once an interval one caller is
// told to probe, and only a probe that succeeds, in less than such a silence,
// closes it again. A Heartbeat measures how late its own beats are, and sends a
// byte round through the poller for whoever must know that what has arrived was
// read.
//
// # Invariants
//
//   - Only what says that the server cannot be reached is a failure; an error
//     the server answered is an answer.
//   - A time-out alone opens nothing: an idle time before the call is no
//     silence, answers to others mean that this one queues, and what this
//     process did not run for is taken off the wait.
//   - At most one probe is under way.
//
// A Breaker starts no goroutine: whoever was told to probe does it. libs/limit's
// Redis store uses it; the gateway runs the Heartbeat.
package breaker
