// Package routing finds where a request goes: the service with the longest prefix
// that its path lies under, the endpoint of the catalog, an upstream by weight.
//
// Order of a request: CheckTarget refuses what is for another kind of server (a
// tunnel, a target without a path), CleanPath gives the path that is matched and
// forwarded, Table.Find the service, and Admission.Check holds the request
// against what the service demands of its callers.
//
// The services come from the table of catalog.v1. A Table is an immutable snapshot
// behind an atomic pointer: requests take no lock, and a Service never changes.
package routing
