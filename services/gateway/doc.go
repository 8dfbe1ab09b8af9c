// Package gateway is the room that decides: a reverse proxy that asks, for
// every request, which rules cover it and whether their counters let it pass,
// and cuts it before the service hears of it where one does not.
//
// # Model
//
// A request walks a list of stages (gate.go):
//
//	admit     nothing passes before the tables are whole
//	identify  whose request is it: API key, else token, else headers of a trusted peer
//	match     clean the path; service by longest prefix, endpoint, rules
//	cacheLookup  is there a stored answer that a rule does not charge
//	decide    ONE call to the counter store for all matched rules
//	cut       403, 429 or 503 as problem+json
//	cached    what the cache may do
//	forward   a stored answer, or to an upstream, by weight
//
// and its event is recorded on the way, before the answer leaves: cut does it
// for refused requests, the upstream's answer header for forwarded ones.
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
