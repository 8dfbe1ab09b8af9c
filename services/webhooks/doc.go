// Package webhooks is the room that delivers: it brings quota events to the
// HTTP endpoints that admins configured.
//
// # Model
//
// A member of a consumer group takes events and writes, for each webhook that
// wants it, a row of webhook_deliveries (fan-out); only then is the offset
// committed. A dispatcher claims rows that are due, for each webhook no more
// than it may have under way, and sends each from a goroutine of its own. What
// is not taken is due again after a full-jitter backoff, and dead after a day.
//
//	quota-events.v1 ─▶ fan-out ─▶ webhook_deliveries ─▶ claim ─▶ send ─▶ mark
//	                                     ▲──── due again ◀───────────────┘
//
// # Invariants
//
//   - An event has one row a webhook, however often it comes.
//   - A claim moves the row's due time behind the longest an attempt may take.
//     Who dies between sending and marking has it sent again, under the same
//     webhook-id: at least once.
//   - Only the last claim of a row may mark it as failed; whoever was answered
//     2xx may mark it as delivered.
//   - A slow endpoint holds up no other: no bound on what is under way is
//     shared between webhooks.
//   - Secrets are opened to sign with and kept nowhere; neither they nor URLs,
//     which may hold tokens, are logged.
//
// The keeper feeds it through quota-events.v1; the control plane's tables say
// which webhooks there are, and its REST shows what became of deliveries.
package webhooks
