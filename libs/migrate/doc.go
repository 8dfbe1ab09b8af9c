// Package migrate brings a database to the newest schema.
//
// Each room owns a folder of schemas/postgres and a version table
// (goose_<room>), so that rooms may be deployed, and rolled back, apart from
// one another. A session-level advisory lock lets any number of processes
// start at once: one migrates, the others wait and find nothing to do.
//
// Fed by schemas/postgres; used by every room that owns tables, and by tests.
package migrate
