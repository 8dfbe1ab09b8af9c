// Package client is the part of the sluice command that talks to a control
// plane: rules, services, keys, usage, decision.
//
// apply is declarative. Files say what should be; every document is decoded
// strictly and judged by the same libraries as on the server, before anything
// is written. Then the server's documents are read, compared with defaults
// filled in on both sides, and what differs is first tried, all of it, by dry
// runs (check.go), as what only the server knows may refuse it. Only then is it
// written, each under the version that was compared: a change made in between
// is reported, never overwritten.
//
// Fed by files and flags; feeds the control plane's REST API, and a gateway with
// the requests of cache warm.
package client
