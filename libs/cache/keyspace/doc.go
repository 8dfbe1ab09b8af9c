// Package keyspace walks over the keys of a Redis that begin alike, on one server or a Cluster, without holding it up.
//
// Fed by [cache.Scan] and by rehearsals, which clean up behind themselves; it only reads.
package keyspace
