// Package controlplane is the room where rules, overrides, services, API keys
// and what is sold (customers, plans, subscriptions) are written and read: REST
// over Postgres.
//
// # The model
//
// A request passes the chain of internal/api (count, recover, authenticate,
// check), which routes it to its operation. internal/rules, internal/sales and
// internal/webhooks have the operations; those on documents that callers write
// whole are internal/resource's. The body is decoded strictly and judged by
// libs/rule, libs/catalog or libs/plan, and a write ends in one transaction of
// internal/store: the row, the outbox row that will carry it, and the audit row
// that says who did it. internal/history reads the audit log and usage events.
//
// Calls run down: this package, then rules, sales, webhooks and history, then
// resource, store, api.
//
// # Invariants
//
//   - The actor in the audit log is the name of the token, or controlplane for
//     what follows from the time alone (internal/sales/scheduler.go).
//   - A caller's clock decides nothing. Instants in bodies are bounded.
//   - A mistake of the caller is a 4xx that names the field; a database that
//     is away is 503 with Retry-After; 500 is a bug.
//
// Fed by admins, the client commands and the console. Feeds the relay through
// the outbox, and reads the usage store that the indexer fills.
package controlplane

//go:generate go run ./internal/genopenapi ../../schemas/openapi/controlplane.yaml
