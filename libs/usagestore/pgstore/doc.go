// Package pgstore keeps usage events in a table of Postgres, for deployments
// without Elasticsearch.
//
// The primary key is (tenant, id) and an insert that meets a row does nothing,
// so a replay adds nothing. A batch is one statement; when the data of one
// event is refused, the batch is halved until that event stands alone. The
// table comes from schemas/postgres/usage.
//
// It is fed by the indexer and asked by the control plane, as package elastic
// is. It is for modest volumes: a search without a tenant walks one index.
package pgstore
