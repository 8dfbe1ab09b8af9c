// Package withservers runs one command with the servers its tests need around it.
//
// Each server is had the first way that works: as given by its variable (SLUICE_TEST_POSTGRES_URL,
// SLUICE_TEST_REDIS_ADDR, SLUICE_TEST_KAFKA_BROKERS, SLUICE_TEST_SEARCH_URL with SLUICE_TEST_SEARCH_FLAVOR); from a
// pinned image where a Docker engine answers; from local packages through package devserver.
//
// Invariants: the command sees all variables set; a server that cannot be had is an error before the command starts,
// never a missing variable; servers given from outside are left alone; those started here are gone when Run returns,
// whichever way the command ended.
//
// It feeds package servertest, which reads the variables.
package withservers
