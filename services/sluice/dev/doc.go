// Package dev is what sluice dev adds to the rooms: the servers they need,
// demo data, and the text that says what runs where.
//
// # Model
//
// Servers are PostgreSQL and Redis as child processes (package devserver) and
// a Kafka broker in process with its log on disk; one data folder belongs to
// one sluice dev at a time. Seed is a module that creates the demo service and
// rules through the REST API, as any other client would.
//
// # Invariants
//
//   - Whatever can be seen to be in the way (a port, the folder) is said before
//     anything starts, all of it at once.
//   - Servers start before the first module and stop after the last; on kill -9
//     they die with the process. One that dies alone is started again.
//   - Data live as long as the data folder, also those that lie outside it.
//   - The demo data is created once in the life of a database: what a user
//     changed or deleted stays so.
//   - A broken log of the in-process broker never prevents a start: it is moved
//     aside, and the relay fills the topics again from Postgres.
//
// Fed by services/sluice. Not for production: no server asks for a password.
package dev
