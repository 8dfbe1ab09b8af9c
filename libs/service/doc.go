// Package service is the life of a process made of rooms: what starts first,
// who waits for whom, when it is ready, and what an operator can ask it.
//
// A room is a Runner. A Module names it, says what must be there before it
// and how it is constructed. A Group owns the modules of one process: one
// goroutine each, started in dependency order, stopped in reverse. Nothing
// here is bound to HTTP; only Admin, the operators' port, is.
//
// # Invariants
//
//   - Each Run goroutine is owned by the Group, and Group.Run returns only
//     after it waited for every one of them (each for at most StopTimeout).
//   - Readiness goes off before the first module is told to stop, DrainDelay
//     earlier, so that load balancers look elsewhere first.
//   - A module that returns while nobody asked it to stops all others, and its
//     name is in the error.
//   - "Started" does not mean "ready": a module runs though what it depends on
//     is still away, and says so through Ready. Nothing waits for readiness to
//     start, or a cold start during an outage would never finish.
//
// Fed by services/sluice, the table of modules; feeds its admin port.
package service
