// Package fleet tells a gateway how many gateways live, and which of them it is.
//
// # Model
//
// Every gateway beats on gateways.v1 each five seconds and reads all beats from
// the topic's one partition, without a consumer group. A member that has not
// beaten for fifteen seconds is gone; one that stops in good order says so. Live
// members are ordered by id, and Place gives this one's rank among them: enough
// to share out a limit so that the shares sum up to it.
//
// A beat also says whether its gateway owes the counters what it let pass by its
// shares; a change is told at once. While a live member owes (Owed), the counters
// seem to have more left than they have.
//
// # Invariants
//
//   - A gateway counts itself always, and at once.
//   - Silence of all, its own beats included, is Kafka's: the set is kept as it
//     was last known. Members are aged only while beats arrive, by the reader's
//     own clock.
//   - A late beat or goodbye of an earlier process under the same id changes
//     nothing.
//   - Asking takes no lock.
//
// services/gateway runs one; libs/limit/local asks it.
package fleet
