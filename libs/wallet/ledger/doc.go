// Package ledger keeps wallets in Postgres: their grants, what use has taken of
// each, and a row for whatever was granted or forfeited.
//
// Both ends write through it, each in a transaction of its own that holds the
// wallet's row (Lock): the control plane grants, the keeper ends grants. So
// what one of them works out from a wallet is not overtaken by the other.
//
// Invariants: the sums of the ledger's rows are the wallet's granted and
// forfeited; a grant has one row of each kind at most (a unique constraint);
// granted is the control plane's to raise (schemas/events/grants), forfeited
// only grows here. The tables are schemas/postgres/controlplane 00004.
package ledger
