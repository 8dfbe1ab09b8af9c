// Package storetest is the conformance suite of usagestore.Store: what the
// indexer and the control plane rely on, whichever store is behind. Each
// implementation runs it against a real server in its integration tests.
package storetest
