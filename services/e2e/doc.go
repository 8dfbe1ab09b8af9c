// Package e2e tests the whole house as its users meet it: the sluice binary,
// built and started as processes of their own, on real PostgreSQL, Kafka,
// Redis and OpenSearch. Here a rule is written over REST and enforced, here
// processes and servers are killed, paused and brought back.
//
// It has no code but tests (build tag integration). A stack is a set of
// servers and the processes on them; each test makes its own, with its own
// database, topics, indices and keys.
package e2e
