// Package membership tells a gateway how many gateways live, and which of them it is.
//
// # Model
//
// Every gateway sends a heartbeat on gateways.v1 every five seconds and reads all of them from
// the topic's one partition, without a consumer group. A member that has not
// been heard for fifteen seconds is gone; one that stops in good order says so. Live
// members are ordered by id, and Position gives this one's rank among them: enough
// to share out a limit so that the shares sum up to it.
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
// The gateway runs one; internal/share divides limits by it.
package membership
