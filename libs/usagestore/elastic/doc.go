// Package elastic keeps usage events in Elasticsearch 8 or OpenSearch 2, one
// index a day.
//
// # Model
//
// The index is <prefix>-YYYY.MM.DD by the event's time in UTC; the document's
// id is the SHA-256 of tenant and event id, so that two tenants may use the
// same id and a replay finds its document there (op create, 409 is stored).
// The index template is put before the first document, whichever process
// starts first.
//
// # Invariants
//
//   - A refusal is permanent only where the document is at fault (400 on the
//     item, 413 on a request that holds it alone). What an operator or time can
//     mend (full disk, closed index, shard limit, rights) is tried again.
//   - Nothing of one flavor is needed for the other: requests carry plain
//     application/json, so OpenSearch does not answer 406, and old indices are
//     deleted by Prune, as ILM and ISM may both be missing.
//
// Package esapi is used on the bare transport: the typed client's product
// check would refuse OpenSearch after the server has done the work.
package elastic
