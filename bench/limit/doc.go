// Command limit has limiters decide the same requests, and prints what each costs, how exact it is and what a Redis that
// falls silent does to it: libs/limit on Redis, and others people use from Go. Its numbers are in
// docs/limiters-compared.md.
//
// # Model
//
// Scenarios, each with two processes (this program, started again) on a private redis-server:
//
//	cost    Workers ask one after the other, of a thousand tenants in turn, none of which comes near a limit
//	rate    the same requests at a rate, whether earlier ones have been answered or not: how long does an answer take
//	race    all ask at one instant for one tenant, far more often than its limit allows: how many pass
//	silence the Redis stops (SIGSTOP) amid requests at a rate, and goes on
//
// A request has one rule or three, and passes if all of them let it. Limits come back so slowly (a day) that none does
// during a run.
//
// # Invariants
//
//   - Every contender gets the same requests, rules, number of workers and Redis, and is used as its documentation says;
//     the table's notes tell how.
//   - Where requests come at a rate, an answer's time counts from when its request was due, so one that waits hides no
//     other.
//   - What Redis spends is its own word (INFO cpu), what the processes spend the kernel's (getrusage).
//   - A contender that cannot run is an error, never a row that is left out.
package main
