// Package gateway is the room that decides: a reverse proxy that asks, for
// every request, which rules cover it and whether their counters let it pass,
// and cuts it before the service hears of it where one does not.
//
// # Model
//
// A request walks a list of stages (pipeline.go):
//
//	admit        reject everything before the tables are complete
//	identify     whose request it is (internal/identify)
//	match        path, service, endpoint, admission (internal/routing); the rules that cover it
//	cacheLookup  find a stored response that a rule does not charge
//	decide       charge: ONE call to the counter store for all matched rules (internal/charge)
//	cut          403, 429 or 503 as problem+json (internal/reject)
//	forward      a stored response, or the service's (internal/proxy, libs/httpcache)
//
// Its event is recorded before the answer leaves: by cut for denied requests, when
// the service's response header arrives for forwarded ones, after the charges are
// finished: refunded, or corrected to the cost that the service states. internal/explain
// answers what would happen to a request that is not made.
//
// # Invariants
//
//   - A request is matched only when rules.v1, overrides.v1, catalog.v1, keys.v1 and grants.v1 were once
//     equal to a mirror record: an absent rule is absent, not unread.
//   - Each decision has one event, in the spool before its answer is sent, and
//     with the same id as the answer's Sluice-Decision-Id. 400, 401, 404, the
//     403 of a refused key and the 503s that no rule asked for are no
//     decisions: no event, no charge.
//   - The path that is matched is the path that is forwarded.
//   - An API key is neither forwarded nor logged nor recorded; its hash is
//     recorded. A token is neither logged nor recorded.
//   - One credential speaks for a request, and nothing beside it does.
//   - No client hears of a shadow rule, and none is denied by one.
//   - What the store answers is never an HTTP 500: where it cannot be asked,
//     the strictest onStoreLoss of the matched rules holds.
//   - A denied request is answered nothing from the cache, and loads nothing.
//   - An answer that a known purge covers is never served, whoever stored it.
//   - What is stored holds no API key, no token and no identity.
//   - No lock is shared by all requests: the index, the catalog and the keys
//     are immutable snapshots behind atomic pointers.
//   - Neither Postgres nor Elasticsearch is known here, and Kafka is never
//     waited for.
//
// Fed by the relay through the compacted topics, and by clients; asks Redis;
// feeds the services behind it, and usage.v1 through libs/spool, which the
// indexer and the keeper read.
package gateway
