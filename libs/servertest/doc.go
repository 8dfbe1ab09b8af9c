// Package servertest gives a test its share of real servers.
//
// # Model
//
// Postgres, Redis, Kafka and Search hand out a part of the shared servers that `make test` starts (with-servers) or the
// SLUICE_TEST_… variables name: a database, a key prefix, a topic prefix, an index prefix of its own, gone after the
// test. StartPostgres, StartRedis, StartKafka and StartSearch start a server for one test alone, which it may kill,
// pause and start again.
//
// # Invariants
//
//   - A missing server fails the test; nothing is skipped.
//   - Two tests never share a name, also when they run at once in two processes.
//   - A test that breaks a server, flushes it or counts what is in it, starts its own.
//
// Only tests import it, those with the build tag integration.
package servertest
