// Package controlplane is the room where rules, overrides, services, API keys
// and what is sold (customers, plans, subscriptions) are written and read: REST
// over Postgres.
//
// # The model
//
// A request walks through handler.go (count, recover, authenticate, check),
// is routed by its OpenAPI operation (api.go, resource.go, keys.go), its body
// decoded strictly and judged by libs/rule or libs/catalog, and ends in one
// transaction (write.go): the row, the outbox row that will carry it, and the
// audit row that says who did it.
//
// # Invariants
//
//   - Row, outbox row and audit row are committed together or not at all.
//   - What the outbox carries for a version is, byte for byte, what the views
//     rules_v1, overrides_v1, catalog_v1, keys_v1 and purges_v1 show for it.
//   - Versions come from one sequence and are drawn under the row's lock: a
//     key's versions commit in their order, also over deletion and re-creation.
//   - The actor in the audit log is the name of the token, or controlplane for
//     what follows from the time alone (due.go).
//   - Whoever changes what a customer has holds the lock of the customer's row
//     (sale.go). A rule or override that a subscription wrote is changed by that
//     subscription alone (owner.go).
//   - An API key is never stored; its hash is neither shown nor audited.
//   - A webhook's secret is answered once and stored sealed, apart from its
//     document.
//   - A caller's clock decides nothing. Instants in bodies are bounded (bounds.go).
//   - A mistake of the caller is a 4xx that names the field; a database that
//     is away is 503 with Retry-After; 500 is a bug.
//
// A subscription is a state, and libs/plan says which rules it stands for: each
// change of one (salewrite.go) writes what differs. Moves, ends and proration
// need no state of their own, and may stop and start anywhere.
//
// Fed by admins, the client commands and the console. Feeds the relay through
// the outbox, and reads the usage store that the indexer fills.
package controlplane

//go:generate go run ./internal/genopenapi ../../schemas/openapi/controlplane.yaml
