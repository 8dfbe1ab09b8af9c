// Package relay carries what was committed in Postgres to Kafka.
//
// # Model
//
// One relay of a deployment holds the replication slot and is active; any
// number of others stand by. A session is one time of holding it: the relay
// reads its own topics whole (tail), publishes what still lies in the outbox,
// compares every compacted topic with its Postgres view (reconcile), and then
// streams rows from the WAL. Whatever goes wrong ends the session; the next
// begins from the start.
//
//	outbox ──WAL──▶ publisher ──▶ Kafka ──▶ tail
//	views  ──────▶ reconcile ──┘              │
//	                    ▲──── what differs ───┘
//
// # Invariants
//
//   - One goroutine publishes (publisher): rows, differences and mirror
//     records leave in one order, and a mirror record describes exactly what
//     lies before it in the topic.
//   - A record of a compacted topic is published only if it is newer than the
//     newest that was handed out for its key.
//   - An outbox row is deleted, and its WAL confirmed, only after Kafka's
//     acknowledgement.
//   - Nothing is published unless Postgres has said, within the last two
//     seconds, that the slot is ours.
//   - The relay knows no room: topics.yaml names topics and views.
//
// Fed by the outbox (libs/outbox) and the views of the rooms; feeds the
// gateways and whoever else reads the topics.
package relay
